from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Unpack

from .._call import Call
from .._errors import AnnalsError
from .._waiting import Stream
from ..types import (
    AppendedEntries,
    CopiedSession,
    EventsQuery,
    JsonObject,
    MergedMeta,
    Message,
    MessagePage,
    MessagesQuery,
    NewEntry,
    NewEvent,
    NewMessage,
    NewSession,
    Page,
    Session,
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

# The API would send a whole session as one page; a list that is walked shall not need the memory for it.
_MESSAGE_PAGE_LIMIT = 200


class Sessions:
    """Sessions and their logs."""

    def __init__(self, transport: Transport) -> None:
        self.configs = SessionConfigs(transport)
        self._transport = transport

    def list(self, **query: Unpack[SessionsQuery]) -> List[Session, Page[Session]]:
        """The project's sessions in order of `created_at`."""
        return List(self._transport, ("session",), query)

    def create(self, *, idempotency_key: str | None = None, **session: Unpack[NewSession]) -> Session:
        return self._transport.call(
            Call("POST", ("session",), body=session, keyed=True, idempotency_key=idempotency_key)
        )

    def get(self, session_id: str) -> Session:
        return self._transport.call(Call("GET", ("session", session_id)))

    def delete(self, session_id: str) -> None:
        """Deletes a session with its log."""
        self._transport.call(Call("DELETE", ("session", session_id), done_when="session_not_found"))

    def copy(self, session_id: str, *, idempotency_key: str | None = None) -> CopiedSession:
        """Copies a session with its log, order and seqs kept.

        A million entries take about a minute: give a longer `timeout_s` by `with_options`, or an `idempotency_key`
        to call again with, under which the service finishes the copy.
        """
        return self._transport.call(
            Call("POST", ("session", session_id, "copy"), keyed=True, idempotency_key=idempotency_key)
        )

    def append(
        self,
        session_id: str,
        *,
        if_match: int | None = None,
        idempotency_key: str | None = None,
        **event: Unpack[NewEvent],
    ) -> SessionEvent:
        """Appends an event. Returns when it is durable."""
        call = _append((session_id, "events"), event, if_match, idempotency_key)
        return self._transport.call(call)

    def append_message(
        self,
        session_id: str,
        *,
        if_match: int | None = None,
        idempotency_key: str | None = None,
        **message: Unpack[NewMessage],
    ) -> Message:
        """Appends a message in its provider's own format. Returns when it is durable."""
        call = _append((session_id, "messages"), message, if_match, idempotency_key)
        return self._transport.call(call)

    def append_batch(
        self,
        session_id: str,
        entries: Sequence[NewEntry],
        *,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> AppendedEntries:
        """Appends up to 1,000 entries with consecutive seqs: all of them or none. Returns when they are durable."""
        call = _append((session_id, "entries"), {"entries": [*entries]}, if_match, idempotency_key)
        return self._transport.call(call)

    def events(self, session_id: str, **query: Unpack[EventsQuery]) -> List[SessionEvent, Page[SessionEvent]]:
        """The events of a session, in order of `seq`."""
        return List(self._transport, ("session", session_id, "events"), query)

    def messages(self, session_id: str, **query: Unpack[MessagesQuery]) -> List[JsonObject, MessagePage]:
        """The messages of a session in one format, in order of `seq`."""
        path = ("session", session_id, "messages")
        return List(self._transport, path, {"limit": _MESSAGE_PAGE_LIMIT, **query})

    def timeline(self, session_id: str, **query: Unpack[TimelineQuery]) -> List[TimelineItem, Page[TimelineItem]]:
        """The messages and events of a session in one list, in order of `seq`."""
        return List(self._transport, ("session", session_id, "timeline"), query)

    def tail(
        self,
        session_id: str,
        *,
        after: int = 0,
        kind: Literal["message", "event"] | None = None,
        type: str | None = None,  # noqa: A002
        idle_timeout_s: float = 45.0,
        on_connect: Callable[[], object] | None = None,
        on_disconnect: Callable[[AnnalsError], object] | None = None,
    ) -> Stream[TimelineItem]:
        """What is in the log behind `after`, and then every new entry as it is stored, across broken connections.

        It never ends by itself. A service that does not answer is given up after the client's `retries`, unless it
        has answered before: then the tail waits for it as long as it takes. A refusal (401, 403, 404 and the like)
        raises AnnalsError.

        - `after`: begin behind this seq, the last one that was seen.
        - `idle_timeout_s`: how long a connection may be silent before it counts as broken. The service is never
          silent for longer than 15 s.
        - `on_connect`: told of each connection that was made.
        - `on_disconnect`: told of each connection that could not be made or broke. The tail goes on by itself.
        """
        return Tail(
            transport=self._transport,
            path=("session", session_id, "timeline"),
            query={"kind": kind, "type": type},
            after=after,
            idle_timeout_s=idle_timeout_s,
            on_connect=on_connect,
            on_disconnect=on_disconnect,
        ).entries()

    def patch_message_meta(self, session_id: str, message_id: str, meta: Mapping[str, object]) -> MergedMeta:
        """Merges into a message's meta: None deletes a key. Gives the meta after the merge."""
        path = ("session", session_id, "messages", message_id, "meta")
        return self._transport.call(Call("PATCH", path, body={"meta": meta}))

    def token_counts(self, session_id: str) -> TokenCounts:
        return self._transport.call(Call("GET", ("session", session_id, "token_counts")))


def _append(
    path: tuple[str, str], body: Mapping[str, object], if_match: int | None, idempotency_key: str | None
) -> Call:
    return Call("POST", ("session", *path), body=body, keyed=True, idempotency_key=idempotency_key, if_match=if_match)
