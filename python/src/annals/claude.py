"""A session store for the Claude Agent SDK: `AnnalsSessionStore`. It needs `annals[claude]`."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar, cast
from weakref import WeakValueDictionary

from claude_agent_sdk import SessionKey, SessionStoreEntry, SessionStoreListEntry, SessionSummaryEntry
from claude_agent_sdk.types import SessionListSubkeysKey

from ._async.annals import AsyncAnnals
from ._async.keyed_session import append_to_keyed, create_session, id_of
from ._claude_branches import compact_at_summaries, follow_branch
from ._claude_transcripts import (
    SUMMARY_CONFIG,
    MainTranscript,
    entry_ids,
    new_entries,
    summary_of,
    transcript_entry,
)
from ._errors import AnnalsError
from ._json import encode
from ._storable import BODY_BYTES_MAX, escape_json, idempotency_key, stable_id, unescape_json
from .types import JsonObject, NewEntry, NewSession, Session

__all__ = ["AnnalsSessionStore"]

_CONFIG = "claude_session"
_PAGE_LIMIT = 200
# Most transcripts whose state is kept; those that were not used for the longest time are read again.
_TRANSCRIPTS_KEPT_MAX = 200
# Most batches that failed and may be sent again.
_IN_DOUBT_MAX = 100

_Value = TypeVar("_Value")


class AnnalsSessionStore:
    """Keeps the transcripts of the Claude Agent SDK in Annals: a transcript is a session, a subagent's one below it.

    - `user`: the user that new transcripts belong to.
    - `body_bytes_max`: the service's `ANNALS_BODY_BYTES_MAX`, if it was changed.
    """

    def __init__(self, annals: AsyncAnnals, *, user: str | None = None, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self._annals = annals
        self._user = user
        self._body_bytes_max = body_bytes_max
        # Within a process, batches are stored in the order of their calls.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._transcripts: OrderedDict[str, MainTranscript] = OrderedDict()
        # The nonces of batches whose outcome is unknown, by their digests: sent again, a batch is the same batch.
        self._in_doubt: OrderedDict[str, str] = OrderedDict()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        if not entries:
            return
        session_id = id_of(self._session_of(key))
        given = cast(list[JsonObject], entries)
        digest = hashlib.sha256(encode([session_id, given])).hexdigest()
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        async with lock:
            nonce = self._in_doubt.pop(digest, None) or secrets.token_hex(16)
            try:
                await self._store(key, given, nonce)
            except BaseException:
                _keep_newest(self._in_doubt, digest, nonce, _IN_DOUBT_MAX)
                raise

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        session_id = id_of(self._session_of(key))
        entries: list[JsonObject] = []
        try:
            async for item in self._annals.sessions.timeline(session_id, limit=1_000):
                entry = await transcript_entry(self._annals, session_id, item)
                if entry is not None:
                    entries.append(entry)
        except AnnalsError as error:
            _raise_unless_missing(error)
        return cast(list[SessionStoreEntry], entries) or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return [
            {"session_id": _transcript_of(session)["session_id"], "mtime": _mtime_of(session)}
            for session in await self._main_sessions(project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        sessions = await self._main_sessions(project_key)
        summaries = [
            summary_of(_transcript_of(session)["session_id"], _mtime_of(session), session["configs"])
            for session in sessions
        ]
        return [summary for summary in summaries if summary]

    async def delete(self, key: SessionKey) -> None:
        """Deletes a transcript; a main one with those of its subagents."""
        session_id = id_of(self._session_of(key))
        self._transcripts.pop(session_id, None)
        try:
            await self._annals.sessions.delete(session_id)
        except AnnalsError as error:
            _raise_unless_missing(error)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        parent = id_of(self._session_of({"project_key": key["project_key"], "session_id": key["session_id"]}))
        subkeys: list[str] = []
        try:
            sessions = self._annals.sessions.list(parent=parent, filter_by_configs={_CONFIG: {}}, limit=_PAGE_LIMIT)
            async for session in sessions:
                subkeys.append(_transcript_of(session)["subpath"])
        except AnnalsError as error:
            _raise_unless_missing(error)
        return subkeys

    async def _store(self, key: SessionKey, entries: Sequence[JsonObject], nonce: str) -> None:
        session = self._session_of(key)
        given: dict[str, JsonObject] = {}
        for entry_id, entry in zip(entry_ids(id_of(session), entries, nonce), entries, strict=True):
            given.setdefault(entry_id, entry)
        for as_messages in (True, False):
            # Earlier versions of Claude Code have what sub-agents say among the lines of the conversation. Its context
            # has none of that, and none of what the command wrote in the model's place.
            parts = [
                (entry, new_entries(entry, entry_id, as_messages and not _is_beside(key, entry), self._body_bytes_max))
                for entry_id, entry in given.items()
            ]
            try:
                if "subpath" in key:
                    await self._append_below(key, session, [part for _, each in parts for part in each], nonce)
                else:
                    await self._transcript(key, session).append(parts)
                    await compact_at_summaries(self._annals, id_of(session), entries)
                    await follow_branch(self._annals, id_of(session), entries)
            except AnnalsError as error:
                # The service knows which messages it can read. It takes any event.
                if error.error != "invalid_request" or not as_messages:
                    raise
            else:
                return

    async def _append_below(self, key: SessionKey, session: NewSession, parts: list[NewEntry], nonce: str) -> None:
        parent = self._session_of({"project_key": key["project_key"], "session_id": key["session_id"]})
        below: NewSession = {**session, "parent": id_of(parent)}

        async def append() -> None:
            await append_to_keyed(
                self._annals,
                below,
                parts,
                idempotency_key=idempotency_key(id_of(session), nonce, parts[0]["kind"]),
                keeps_stored=True,
                body_bytes_max=self._body_bytes_max,
            )

        try:
            await append()
        except AnnalsError as error:
            _raise_unless_missing(error)
            await create_session(self._annals, parent)
            await append()

    def _transcript(self, key: SessionKey, session: NewSession) -> MainTranscript:
        session_id = id_of(session)
        kept = self._transcripts.get(session_id) or MainTranscript(self._annals, session, key, self._body_bytes_max)
        _keep_newest(self._transcripts, session_id, kept, _TRANSCRIPTS_KEPT_MAX)
        return kept

    def _session_of(self, key: SessionKey) -> NewSession:
        configs = {"project_key": key["project_key"], "session_id": key["session_id"], "subpath": key.get("subpath")}
        names = [name for name in configs.values() if name is not None]
        return {
            "use_uuid": stable_id("claude-agent-sdk", *names),
            "configs": escape_json({_CONFIG: configs}),
            "user": self._user,
        }

    async def _main_sessions(self, project_key: str) -> list[Session]:
        """The main transcripts that something was appended to."""
        filter_ = escape_json({_CONFIG: {"project_key": project_key, "subpath": None}, SUMMARY_CONFIG: {}})
        return [each async for each in self._annals.sessions.list(filter_by_configs=filter_, limit=_PAGE_LIMIT)]


def _is_beside(key: SessionKey, entry: JsonObject) -> bool:
    """Whether a line of a main transcript is of a sub-agent, or any line says what failed in the model's place."""
    is_of_agent = "subpath" not in key and entry.get("isSidechain") is True
    return is_of_agent or entry.get("isApiErrorMessage") is True


def _transcript_of(session: Session) -> JsonObject:
    return unescape_json(session["configs"][_CONFIG])


def _mtime_of(session: Session) -> int:
    """Milliseconds since 1970, by the service's clock."""
    return int(datetime.fromisoformat(session["updated_at"].replace("Z", "+00:00")).timestamp() * 1000)


def _raise_unless_missing(error: AnnalsError) -> None:
    if error.error != "session_not_found":
        raise error


def _keep_newest(kept: OrderedDict[str, _Value], name: str, value: _Value, most: int) -> None:
    """Sets an entry as the newest one, and drops the oldest beyond `most`."""
    kept[name] = value
    kept.move_to_end(name)
    if len(kept) > most:
        kept.popitem(last=False)
