from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import httpx
from typing_extensions import Unpack

from .._call import Call, File, form_of
from .._errors import AnnalsError, no_answer
from .._waiting import Stream
from ..types import (
    AppendedEntries,
    AppendedToSessions,
    Context,
    ContextQuery,
    CopiedSession,
    EventsQuery,
    Fork,
    JsonObject,
    LatestQuery,
    MergedMeta,
    Message,
    MessagePage,
    MessagesQuery,
    NewCompaction,
    NewEntry,
    NewEvent,
    NewMessage,
    NewSession,
    Page,
    Proof,
    RetractedEntries,
    Retraction,
    Session,
    SessionAppend,
    SessionEvent,
    SessionsQuery,
    TimelineItem,
    TimelineQuery,
    TokenCounts,
)
from .list import List
from .session_configs import SessionConfigs
from .tail import Tail
from .transport import Transport

# Without a limit the API sends the whole session as one page, which would need memory for all of it.
_MESSAGE_PAGE_LIMIT = 200


class Sessions:
    """Sessions and their logs."""

    def __init__(self, transport: Transport) -> None:
        self.configs = SessionConfigs(transport)
        self._transport = transport

    def list(self, **query: Unpack[SessionsQuery]) -> List[Session, Page[Session]]:
        """The project's sessions, in order of `created_at`."""
        return List(self._transport, ("session",), query)

    def create(self, *, idempotency_key: str | None = None, **session: Unpack[NewSession]) -> Session:
        return self._transport.call(
            Call("POST", ("session",), body=session, keyed=True, idempotency_key=idempotency_key)
        )

    def get(self, session_id: str) -> Session:
        return self._transport.call(Call("GET", ("session", session_id)))

    def update(self, session_id: str, *, expires_in_s: int | None) -> Session:
        """Sets when the session expires; None: never."""
        call = Call("PATCH", ("session", session_id), body={"expires_in_s": expires_in_s})
        return self._transport.call(call)

    def delete(self, session_id: str) -> None:
        """Deletes a session with its log, and the sessions below it."""
        self._transport.call(Call("DELETE", ("session", session_id), done_when="session_not_found"))

    def copy(self, session_id: str, *, idempotency_key: str | None = None) -> CopiedSession:
        """Copies a session and its log, with the same order and seqs.

        A million entries take about a minute: set a longer `timeout_s` by `with_options`, or pass an
        `idempotency_key`, with which the service finishes the copy even if you leave, and call again.
        """
        return self._transport.call(
            Call("POST", ("session", session_id, "copy"), keyed=True, idempotency_key=idempotency_key)
        )

    def fork(self, session_id: str, *, idempotency_key: str | None = None, **fork: Unpack[Fork]) -> CopiedSession:
        """Copies a session up to a seq, with a user and configs of its own if given. Otherwise as `copy`."""
        path = ("session", session_id, "copy")
        call = Call("POST", path, body=fork, keyed=True, idempotency_key=idempotency_key)
        return self._transport.call(call)

    def append(
        self,
        session_id: str,
        *,
        if_match: int | None = None,
        fence: int | None = None,
        idempotency_key: str | None = None,
        **event: Unpack[NewEvent],
    ) -> SessionEvent:
        """Appends an event. When it returns, the event is durable.

        With `fence`, only while the session's lease has this fence; otherwise AnnalsError with `fenced`.
        """
        call = _append((session_id, "events"), event, if_match, fence, idempotency_key)
        return self._transport.call(call)

    def append_message(
        self,
        session_id: str,
        *,
        if_match: int | None = None,
        fence: int | None = None,
        idempotency_key: str | None = None,
        files: Mapping[str, File] | None = None,
        **message: Unpack[NewMessage],
    ) -> Message:
        """Appends a message in its provider's own format. When it returns, the message is durable.

        `files` become attachments of the message: each is a tuple of name, bytes and media type. The message has to be
        in `acontext` format, with a part for each file that has the file's key in `files` as its `file_field`.
        """
        call = _append((session_id, "messages"), message, if_match, fence, idempotency_key)
        if files:
            content, headers = form_of({"payload": message}, files)
            call = replace(call, body=None, content=content, headers=headers)
        return self._transport.call(call)

    def append_batch(
        self,
        session_id: str,
        entries: Sequence[NewEntry] = (),
        *,
        apply: Sequence[str] = (),
        if_match: int | None = None,
        fence: int | None = None,
        idempotency_key: str | None = None,
    ) -> AppendedEntries:
        """Appends up to 1,000 entries, all or nothing, with consecutive seqs. When it returns, they are durable.

        `apply`: ids of input that waits in the session's inbox. It is stored before the entries, exactly once:
        otherwise AnnalsError with `not_pending`, and nothing is stored.
        """
        body = {
            **({"apply": [*apply]} if apply else {}),
            **({"entries": [*entries]} if entries or not apply else {}),
        }
        call = _append((session_id, "entries"), body, if_match, fence, idempotency_key)
        return self._transport.call(call)

    def append_to_sessions(
        self,
        appends: Sequence[SessionAppend],
        *,
        with_items: bool = True,
        idempotency_key: str | None = None,
    ) -> AppendedToSessions:
        """Appends up to 1,000 entries to up to 20 sessions, all or nothing.

        Each `configs_patch` is merged into its session's configs. When it returns, everything is durable.
        `with_items=False`: the answer has `seqs` in place of the entries.
        """
        query = None if with_items else {"with_items": False}
        body = {"appends": [*appends]}
        return self._transport.call(
            Call("POST", ("entries",), query=query, body=body, keyed=True, idempotency_key=idempotency_key)
        )

    def events(self, session_id: str, **query: Unpack[EventsQuery]) -> List[SessionEvent, Page[SessionEvent]]:
        """A session's events, in order of `seq`."""
        return List(self._transport, ("session", session_id, "events"), query)

    def messages(self, session_id: str, **query: Unpack[MessagesQuery]) -> List[JsonObject, MessagePage]:
        """A session's messages in one format, in order of `seq`."""
        path = ("session", session_id, "messages")
        return List(self._transport, path, {"limit": _MESSAGE_PAGE_LIMIT, **query})

    def timeline(self, session_id: str, **query: Unpack[TimelineQuery]) -> List[TimelineItem, Page[TimelineItem]]:
        """A session's messages and events in one list, in order of `seq`."""
        return List(self._transport, ("session", session_id, "timeline"), query)

    def tail(
        self,
        session_id: str,
        *,
        after: int | TimelineItem = 0,
        kind: Literal["message", "event"] | None = None,
        type: str | None = None,  # noqa: A002
        idle_timeout_s: float = 45.0,
        on_connect: Callable[[], object] | None = None,
        on_disconnect: Callable[[AnnalsError], object] | None = None,
    ) -> Stream[TimelineItem]:
        """The stored entries after `after`, and then each new entry as it is stored, across broken connections.

        It does not end by itself. If the service does not answer at first, the tail fails after the client's
        `retries`; after the first answer it keeps reconnecting without limit. If the service refuses it (401, 403,
        404), it raises AnnalsError.

        - `after`: the last seq or entry that you have seen. With an entry, a log that was replaced meanwhile, as by
          a restore, is refused: 409 `log_diverged`.
        - `idle_timeout_s`: the longest silence before a connection counts as broken. The service sends something at
          least every 15 s.
        - `on_connect`: called for each connection that is made.
        - `on_disconnect`: called for each connection that fails or breaks. The tail reconnects by itself.
        """
        seq = after if isinstance(after, int) else after["seq"]
        return Tail(
            transport=self._transport,
            path=("session", session_id, "timeline"),
            query={"kind": kind, "type": type, "after_seq": seq},
            after=seq,
            position=None if isinstance(after, int) else f"{after['seq']}@{after['created_at']}",
            idle_timeout_s=idle_timeout_s,
            on_connect=on_connect,
            on_disconnect=on_disconnect,
        ).entries()

    def latest(self, session_id: str, **query: Unpack[LatestQuery]) -> List[TimelineItem, Page[TimelineItem]]:
        """The newest entry of each key, in order of keys: of one `key`, of those with a `key_prefix`, or of all."""
        return List(self._transport, ("session", session_id, "latest"), query)

    def retract(
        self,
        session_id: str,
        *,
        if_match: int | None = None,
        fence: int | None = None,
        idempotency_key: str | None = None,
        **which: Unpack[Retraction],
    ) -> RetractedEntries:
        """Retracts entries by `ids`, `after_seq` or `last`, and returns them with the event that says so.

        Messages, contexts and latest entries leave them out; nothing is deleted. `last=1` is an atomic pop: no two
        callers get the same entry. `entries` are appended in the same commit, and so replace what is retracted.
        """
        call = _append((session_id, "retractions"), which, if_match, fence, idempotency_key)
        return self._transport.call(call)

    def compact(
        self,
        session_id: str,
        *,
        if_match: int | None = None,
        fence: int | None = None,
        idempotency_key: str | None = None,
        **compaction: Unpack[NewCompaction],
    ) -> SessionEvent:
        """Lets `summary` stand for the entries up to `to_seq` in contexts, and returns the event that says so.

        The messages in `except_` stay whole. The log stays as it is; retracting an entry that is covered takes the
        summary out of the next context.
        """
        call = _append((session_id, "compactions"), compaction, if_match, fence, idempotency_key)
        return self._transport.call(call)

    def proof(self, session_id: str, seq: int) -> Proof:
        """An entry with what proves it.

        `verify.py` checks such an answer as it was sent: floats lose digits, so keep its text for that.
        """
        return self._transport.call(Call("GET", ("session", session_id, "proof"), query={"seq": seq}))

    def export(
        self,
        session_id: str,
        format: Literal["atif", "openai", "anthropic", "jsonl"],  # noqa: A002
    ) -> Stream[bytes]:
        """The whole session as a file for another tool, piece by piece.

        What the format has no form for is counted at the end of the file. Only a stream that ends without an error is
        whole.
        """
        what = "The export"
        headers = {"accept": "application/json, application/x-ndjson"}
        call = Call("GET", ("session", session_id, "export"), query={"format": format}, headers=headers)
        try:
            with self._transport.open(call, what, self._transport.limits.timeout_s) as response:
                for piece in response.iter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise no_answer(what, error) from error

    def patch_message_meta(
        self, session_id: str, message_id: str, meta: Mapping[str, object], *, fence: int | None = None
    ) -> MergedMeta:
        """Merges into a message's meta; None deletes a key. Returns the meta after the merge."""
        path = ("session", session_id, "messages", message_id, "meta")
        return self._transport.call(Call("PATCH", path, body={"meta": meta}, fence=fence))

    def context(self, session_id: str, **query: Unpack[ContextQuery]) -> Context:
        """The messages to send to a model next.

        Send the answer's `pin` with the next call, so that the prefix stays the same until `max_tokens` is passed
        again.
        """
        return self._transport.call(Call("GET", ("session", session_id, "context"), query=query))

    def token_counts(self, session_id: str) -> TokenCounts:
        return self._transport.call(Call("GET", ("session", session_id, "token_counts")))


def _append(
    path: tuple[str, str],
    body: Mapping[str, object],
    if_match: int | None,
    fence: int | None,
    idempotency_key: str | None,
) -> Call:
    return Call(
        "POST",
        ("session", *path),
        body=body,
        keyed=True,
        idempotency_key=idempotency_key,
        if_match=if_match,
        fence=fence,
    )
