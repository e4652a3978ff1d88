"""How a transcript of the Claude Agent SDK is stored: as in `@annals/claude-agent-sdk`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from claude_agent_sdk import SessionKey, SessionStoreEntry, SessionSummaryEntry, fold_session_summary

from ._async.annals import AsyncAnnals
from ._async.keyed_session import (
    PART_TYPE,
    created_on_first_use,
    id_of,
    read_by_ids,
    read_event_data,
    read_whole_message,
    split_large_event,
    split_large_message,
)
from ._errors import AnnalsError
from ._json import dumps
from ._storable import cut_into_batches, escape_json, stable_id, unescape_json
from .types import JsonObject, NewEntry, NewSession, Page, TimelineItem

SUMMARY_CONFIG = "claude_summary"
"""Where a transcript's summary stands in its session's configs."""
# What the types of events begin with. The rest is the entry's own type.
_TYPE_PREFIX = "claude."
_TYPE_LENGTH_MAX = 200
# What a request needs beside its entries. A summary has a few texts, which the SDK cuts.
_SUMMARY_BYTES_MAX = 16 * 1024
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# Somebody else has appended, has stored an entry with one of the ids, or has deleted the session.
_PASSING = ("seq_conflict", "idempotency_key_reused", "session_not_found")


def entry_ids(session_id: str, entries: Sequence[JsonObject], nonce: str) -> list[str]:
    """An id for each entry of a batch, so that a batch that is sent again stores nothing twice.

    An entry without a uuid is named after the nearest entry that has one, by its distance and its content: where that
    one is a repetition, so is it. In a batch without any uuid, `nonce` makes the ids new.
    """
    named = [index for index, entry in enumerate(entries) if "uuid" in entry]
    anchor = named[0] if named else -1
    ids: list[str] = []
    for index, entry in enumerate(entries):
        uuid = entry.get("uuid")
        if uuid is not None:
            anchor = index
            ids.append(id_of_uuid(session_id, uuid))
        elif anchor < 0:
            ids.append(stable_id(session_id, nonce, f"{index}"))
        else:
            beside = entries[anchor]["uuid"]
            ids.append(stable_id(session_id, "beside", beside, f"{index - anchor}", dumps(entry)))
    return ids


def id_of_uuid(session_id: str, uuid: str) -> str:
    """The id of the entry of the log that holds a line of a transcript."""
    return uuid.lower() if _UUID.fullmatch(uuid) else stable_id(session_id, "uuid", uuid)


def new_entries(entry: JsonObject, entry_id: str, as_messages: bool, body_bytes_max: int) -> list[NewEntry]:
    """What stores an entry: a message if it has one, otherwise an event. What is large is stored in parts."""
    claude = {name: value for name, value in entry.items() if name != "message"}
    message: Any = entry.get("message")
    is_message = as_messages and entry["type"] in ("user", "assistant") and isinstance(message, dict)
    if not is_message:
        kind = f"{_TYPE_PREFIX}{entry['type']}"[:_TYPE_LENGTH_MAX]
        return split_large_event({"kind": "event", "type": kind, "id": entry_id, "data": entry}, body_bytes_max)
    blob = cast(JsonObject, message)
    return split_large_message(
        {"kind": "message", "format": "anthropic", "id": entry_id, "blob": blob, "meta": {"claude": claude}},
        body_bytes_max,
    )


async def transcript_entry(annals: AsyncAnnals, session_id: str, item: TimelineItem) -> JsonObject | None:
    """The transcript's entry that an entry of the log holds; None for one that holds none, or was retracted."""
    if item.get("retracted_by") is not None:
        return None
    if item["kind"] == "message":
        blob, meta = await read_whole_message(annals, session_id, item["blob"], item["meta"])
        claude = meta.get("claude")
        return {**claude, "message": blob} if claude else None
    if item["type"] == PART_TYPE or not item["type"].startswith(_TYPE_PREFIX):
        return None
    return await read_event_data(annals, session_id, item)


class MainTranscript:
    """Appends to a main transcript and keeps its summary with it.

    Entries and summary change in one transaction, which holds only if nobody has appended since the summary was read.
    So any number of processes keep it right.
    """

    def __init__(self, annals: AsyncAnnals, session: NewSession, key: SessionKey, body_bytes_max: int) -> None:
        self._annals = annals
        self._session = session
        self._session_id = id_of(session)
        self._key = key
        self._body_bytes_max = body_bytes_max
        # The last seq and the summary, if the last append was ours and all of it was new. If somebody else appends,
        # the next append finds out.
        self._head: tuple[int, SessionSummaryEntry | None] | None = None

    async def append(self, stored: Sequence[tuple[JsonObject, list[NewEntry]]]) -> None:
        """Each entry of the transcript comes with what stores it, of which the last part makes it complete."""
        ends = {parts[-1].get("id"): entry for entry, parts in stored}
        escaped = [escape_json(part) for _, parts in stored for part in parts]
        for batch in cut_into_batches(escaped, self._body_bytes_max - _SUMMARY_BYTES_MAX):
            while not await self._append_batch(batch, ends):
                pass

    async def _append_batch(self, batch: list[NewEntry], ends: dict[str | None, JsonObject]) -> bool:
        """Whether it is stored. If not, it can be tried again with what is stored now."""
        is_known = self._head is not None
        try:
            seq, summary = self._head or await self._read_head()
            fresh = batch if is_known else await self._not_stored(batch)
            self._head = None
            if not fresh:
                return True
            added = [ends[entry_id] for part in fresh if (entry_id := part.get("id")) in ends]
            if added:
                summary = fold_session_summary(summary, self._key, cast(list[SessionStoreEntry], added))
            patch = {SUMMARY_CONFIG: _camel(summary["data"])} if summary else {}
            answer = await self._annals.sessions.append_to_sessions(
                [
                    {
                        "session_id": self._session_id,
                        "entries": fresh,
                        "if_match": seq,
                        "configs_patch": escape_json(patch),
                    }
                ]
            )
        except AnnalsError as error:
            self._head = None
            if error.error in _PASSING:
                return False
            raise
        seqs = [item["seq"] for item in answer["appends"][0]["items"]]
        if min(seqs) > seq:
            self._head = (max(seqs), summary)
        return True

    async def _read_head(self) -> tuple[int, SessionSummaryEntry | None]:
        """The seq is read first: if somebody appends before the summary is read, the append on it is refused."""
        newest = self._annals.sessions.timeline(self._session_id, time_desc=True, limit=1)

        async def read() -> Page[TimelineItem]:
            return await newest.page()

        items = (await created_on_first_use(self._annals, self._session, read))["items"]
        configs = (await self._annals.sessions.configs.get(self._session_id))["configs"]
        return items[0]["seq"] if items else 0, summary_of(self._key["session_id"], 0, configs)

    async def _not_stored(self, batch: list[NewEntry]) -> list[NewEntry]:
        ids = [part.get("id", "") for part in batch]
        stored = {item["id"] for item in await read_by_ids(self._annals, self._session_id, ids)}
        return [part for part in batch if part.get("id") not in stored]


def summary_of(session_id: str, mtime: int, configs: JsonObject) -> SessionSummaryEntry | None:
    data = unescape_json(configs.get(SUMMARY_CONFIG))
    return {"session_id": session_id, "mtime": mtime, "data": _snake(data)} if data is not None else None


# The SDK for Python names what a summary has `first_prompt`, the one for JavaScript `firstPrompt`. It is stored under
# the latter's names, so that both keep one summary. A name that does not come back exactly stays as it is.
def _camel(data: JsonObject) -> JsonObject:
    return {_renamed(name, _camel_name, _snake_name): value for name, value in data.items()}


def _snake(data: JsonObject) -> JsonObject:
    return {_renamed(name, _snake_name, _camel_name): value for name, value in data.items()}


def _renamed(name: str, there: Any, back: Any) -> str:
    return there(name) if back(there(name)) == name else name


def _camel_name(name: str) -> str:
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)


def _snake_name(name: str) -> str:
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)
