"""A conversation store for Pydantic AI: `AnnalsConversationStore`. It needs `annals[pydantic-ai]`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter

from ._async.annals import AsyncAnnals
from ._async.keyed_session import create_session, id_of, read_by_ids, read_event_data, split_large_event
from ._errors import AnnalsError
from ._storable import BODY_BYTES_MAX, cut_into_batches, escape_json, stable_id, unescape_json
from .types import NewEntry, NewSession

__all__ = ["AnnalsConversationStore"]

_CONFIG = "pydantic_ai"
_ENTRY_TYPE = "pydantic_ai.entry"
_RECORD_TYPE = "pydantic_ai.record"
_RECORD_KEY = "record"
_PAGE_LIMIT = 200
# Most ends of histories of which it is remembered where they are stored.
_ENDS_KEPT_MAX = 10_000
_RECORDS = TypeAdapter(ConversationRecord)


class AnnalsConversationStore(ConversationStore):
    """Keeps the conversations of Pydantic AI in Annals: a conversation is a session with all entries of its history.

    A fork has copies of the entries that it shares, so deleting a conversation deletes its messages and no others.

    - `user`: the user that new conversations belong to.
    - `body_bytes_max`: the service's `ANNALS_BODY_BYTES_MAX`, if it was changed.
    """

    def __init__(self, annals: AsyncAnnals, *, user: str | None = None, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self._annals = annals
        self._user = user
        self._body_bytes_max = body_bytes_max
        # The conversations with which histories that end in an entry were last read or written, the newest one last.
        self._homes: OrderedDict[str, list[str]] = OrderedDict()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return (await self._newest(_session_id_of(conversation_id)))[1]

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Reads all records of the scope, one request each, to find the newest."""
        records = [record async for record in self._records({} if scope is None else {"scope": scope})]
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        configs = {"conversation_id": record.conversation_id, "scope": record.scope}
        session: NewSession = {
            "use_uuid": _session_id_of(record.conversation_id),
            "user": self._user,
            "configs": escape_json({_CONFIG: configs}),
        }
        session_id = id_of(session)
        while True:
            seq, stored = await self._newest(session_id)
            if (stored.revision if stored else None) != expected_revision:
                raise ConversationConflict(record.conversation_id)
            added = [*await self._shared(session_id, record, new_entries), *new_entries]
            entries = [part for entry in added for part in self._parts(session_id, entry)]
            data = _RECORDS.dump_python(record, mode="json")
            entries.append({"kind": "event", "type": _RECORD_TYPE, "key": _RECORD_KEY, "data": data})
            if stored is None:
                await create_session(self._annals, session)
            try:
                # Entries to which no record leads mean nothing, so the record comes last.
                for batch in cut_into_batches([escape_json(entry) for entry in entries], self._body_bytes_max):
                    answer = await self._annals.sessions.append_batch(session_id, batch, if_match=seq)
                    seq = max(seq, *(item["seq"] for item in answer["items"]))
            except AnnalsError as error:
                if error.error not in ("seq_conflict", "session_not_found"):
                    raise
            else:
                self._remember(session_id, record)
                return

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes a conversation with all its entries."""
        session_id = _session_id_of(conversation_id)
        while True:
            seq, stored = await self._newest(session_id)
            if stored is None or stored.revision != expected_revision:
                raise ConversationConflict(conversation_id)
            try:
                # Whoever saves meanwhile on the record that was read finds it gone.
                gone: NewEntry = {"kind": "event", "type": _RECORD_TYPE, "key": _RECORD_KEY, "data": {}}
                await self._annals.sessions.append_batch(session_id, [gone], if_match=seq)
                await self._annals.sessions.delete(session_id)
            except AnnalsError as error:
                if error.error not in ("seq_conflict", "session_not_found"):
                    raise
            else:
                return

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Raises LookupError if no conversation has it."""
        [entry] = await self.read_history(entry_id, limit=1)
        return entry

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Raises LookupError if no conversation has the entry."""
        if head_id is None or limit == 0:
            return []
        for session_id in reversed(self._homes.get(head_id, [])):
            history = await self._read_history(session_id, head_id, limit)
            if history is not None:
                return history
        # An entry that comes from elsewhere, such as another process: every conversation is asked.
        async for record in self._records({}):
            session_id = _session_id_of(record.conversation_id)
            history = await self._read_history(session_id, head_id, limit)
            if history is not None:
                self._remember(session_id, record, head_id)
                return history
        raise LookupError(f"No conversation has the entry {head_id}.")

    async def _read_history(self, session_id: str, head_id: str, limit: int | None) -> list[ConversationEntry] | None:
        """From the end on: an entry is always stored after the one it points at."""
        if not await _has_entry(self._annals, session_id, head_id):
            return None
        history: list[ConversationEntry] = []
        wanted: str | None = head_id
        size = min(1_000, max(20, 2 * limit)) if limit else 1_000
        async for item in self._annals.sessions.timeline(
            session_id, kind="event", type=_ENTRY_TYPE, time_desc=True, limit=size
        ):
            if item["kind"] != "event" or item["id"] != _entry_id_of(session_id, wanted):
                continue
            data = await read_event_data(self._annals, session_id, item)
            [message] = ModelMessagesTypeAdapter.validate_python([data["message"]])
            history.append(ConversationEntry(id=data["id"], parent_id=data["parent_id"], message=message))
            wanted = data["parent_id"]
            if wanted is None or len(history) == limit:
                break
        return history[::-1]

    async def _shared(
        self, session_id: str, record: ConversationRecord, new_entries: Sequence[ConversationEntry]
    ) -> list[ConversationEntry]:
        """The entries that a new fork shares with the conversation it comes from."""
        head_id = new_entries[0].parent_id if new_entries else record.head_id
        if head_id is None or await _has_entry(self._annals, session_id, head_id):
            return []
        source = _session_id_of(record.forked_from or "")
        history = await self._read_history(source, head_id, None)
        if history is None:
            raise ConversationConflict(record.conversation_id)
        return history

    def _parts(self, session_id: str, entry: ConversationEntry) -> list[NewEntry]:
        [message] = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
        return split_large_event(
            {
                "kind": "event",
                "type": _ENTRY_TYPE,
                "id": _entry_id_of(session_id, entry.id),
                "data": {"id": entry.id, "parent_id": entry.parent_id, "message": message},
            },
            self._body_bytes_max,
        )

    async def _newest(self, session_id: str) -> tuple[int, ConversationRecord | None]:
        """The last seq, and the record, if there is one. An append on that seq holds only if it is still the newest."""
        try:
            newest = await self._annals.sessions.timeline(session_id, time_desc=True, limit=1).page()
            found = await self._annals.sessions.latest(session_id, key=_RECORD_KEY).page()
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise
            return 0, None
        data: Any = {}
        for item in found["items"]:
            data = unescape_json(item["data"]) if item["kind"] == "event" else {}
        record = _RECORDS.validate_python(data) if data else None
        if record:
            self._remember(session_id, record)
        return newest["items"][0]["seq"] if newest["items"] else 0, record

    async def _records(self, names: dict[str, str]):
        filter_ = escape_json({_CONFIG: names})
        async for session in self._annals.sessions.list(filter_by_configs=filter_, limit=_PAGE_LIMIT):
            _, record = await self._newest(session["id"])
            if record:
                yield record

    def _remember(self, session_id: str, record: ConversationRecord, *more: str) -> None:
        for end in (record.head_id, *record.branches, *more):
            if end is None:
                continue
            homes = [each for each in self._homes.get(end, []) if each != session_id]
            self._homes[end] = [*homes, session_id]
            self._homes.move_to_end(end)
        while len(self._homes) > _ENDS_KEPT_MAX:
            self._homes.popitem(last=False)


async def _has_entry(annals: AsyncAnnals, session_id: str, entry_id: str) -> bool:
    """Whether a session is there and has the entry."""
    try:
        return len(await read_by_ids(annals, session_id, [_entry_id_of(session_id, entry_id)])) > 0
    except AnnalsError as error:
        if error.error != "session_not_found":
            raise
        return False


def _session_id_of(conversation_id: str) -> str:
    return stable_id("pydantic-ai", conversation_id)


def _entry_id_of(session_id: str, entry_id: str | None) -> str:
    return stable_id(session_id, entry_id or "")
