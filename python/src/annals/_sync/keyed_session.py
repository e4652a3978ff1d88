"""Sessions that are named by a framework's own key, and events too large for one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from .._errors import AnnalsError
from .._json import dumps, loads
from .._storable import (
    BODY_BYTES_MAX,
    META_BYTES_MAX,
    UnstorableEntries,
    byte_length,
    cut_into_batches,
    cut_text,
    entry_length,
    escape_json,
    shorten_texts,
    stable_id,
    unescape_json,
    without_repeated_ids,
)
from .._waiting import Use
from ..types import JsonObject, NewEntry, NewEventEntry, NewMessageEntry, NewSession, TimelineEvent, TimelineItem
from .annals import Annals

Answer = TypeVar("Answer")

PART_TYPE = "adapter.part"
"""The type of an event that is a part of another event's data; it means nothing by itself."""
# What stands in the place of an event's data: the ids of the events whose texts, joined, are the data as JSON.
_PARTS_FIELD = "adapter_parts"
# Of one request.
_IDS_MAX = 200


def created_on_first_use(annals: Annals, session: NewSession, use: Use[Answer]) -> Answer:
    """Runs what needs the session, and creates the session if it is not there. Callers at once create one session."""
    try:
        return use()
    except AnnalsError as error:
        if error.error != "session_not_found":
            raise
    create_session(annals, session)
    return use()


def create_session(annals: Annals, session: NewSession) -> None:
    """Creates the session, or leaves the one that is there as it is, also if its configs have changed."""
    try:
        annals.sessions.create(**session)
    except AnnalsError as error:
        if error.error != "session_exists":
            raise


def append_to_keyed(
    annals: Annals,
    session: NewSession,
    entries: Sequence[NewEntry],
    *,
    idempotency_key: str,
    keeps_stored: bool = False,
    body_bytes_max: int = BODY_BYTES_MAX,
    fence: int | None = None,
) -> list[TimelineItem]:
    """Appends to a session, which the first append creates, and returns the stored entries.

    Entries that repeat an id are stored once. What PostgreSQL cannot hold is escaped; `unescape_json` restores it.
    More than one request can carry is appended in several.

    - `idempotency_key`: what the framework calls this write. Repeating the append stores nothing more.
    - `keeps_stored`: an entry whose id is stored already, with other content, is left out. Each has an id.

    Raises UnstorableEntries before anything is stored.
    """
    batches = cut_into_batches(without_repeated_ids([escape_json(entry) for entry in entries]), body_bytes_max)
    stored: list[TimelineItem] = []
    for number, batch in enumerate(batches):
        key = f"{idempotency_key}:{number}" if number else idempotency_key
        stored += _append(annals, session, batch, key, keeps_stored, fence)
    return stored


def _append(
    annals: Annals,
    session: NewSession,
    batch: list[NewEntry],
    key: str,
    keeps_stored: bool,
    fence: int | None,
) -> list[TimelineItem]:
    session_id = id_of(session)

    def append() -> list[TimelineItem]:
        return (annals.sessions.append_batch(session_id, batch, idempotency_key=key, fence=fence))["items"]

    try:
        return created_on_first_use(annals, session, append)
    except AnnalsError as error:
        if not keeps_stored or error.error != "idempotency_key_reused":
            raise
        stored = {item["id"] for item in read_by_ids(annals, session_id, [entry.get("id", "") for entry in batch])}
        rest = [entry for entry in batch if entry.get("id", "").lower() not in stored]
        if len(rest) == len(batch):
            raise
    return _append(annals, session, rest, stable_id(key, dumps(rest)), keeps_stored, fence) if rest else []


def id_of(session: NewSession) -> str:
    session_id = session.get("use_uuid")
    if session_id is None:
        raise UnstorableEntries("A keyed session has a stable id.")
    return session_id


def read_by_ids(annals: Annals, session_id: str, ids: Sequence[str]) -> list[TimelineItem]:
    """The entries with these ids, any number of them, in this order, without those that the session does not have."""
    found: list[TimelineItem] = []
    for start in range(0, len(ids), _IDS_MAX):
        page = annals.sessions.timeline(session_id, ids=",".join(ids[start : start + _IDS_MAX])).page()
        found += page["items"]
    return found


def split_large_event(event: NewEventEntry, body_bytes_max: int = BODY_BYTES_MAX) -> list[NewEntry]:
    """An event that one request cannot carry, as several: its parts, and then the event, which names them.

    The event has an id, which the ids of its parts are made of. Parts that are left alone because the event was not
    stored mean nothing. A smaller event stays as it is.
    """
    part_bytes_max = body_bytes_max // 2
    if byte_length(event) <= part_bytes_max:
        return [event]
    parts, named = _parts_of(event.get("id", ""), event["data"], part_bytes_max)
    return [*parts, {**event, "data": named}]


def _parts_of(entry_id: str, value: object, part_bytes_max: int) -> tuple[list[NewEntry], JsonObject]:
    """A value as parts of the entry with this id, and what names them."""
    parts: list[NewEntry] = [
        {
            "kind": "event",
            "type": PART_TYPE,
            "id": stable_id("part", entry_id.lower(), f"{index}"),
            "data": {"text": text},
        }
        for index, text in enumerate(cut_text(dumps(value), part_bytes_max))
    ]
    return parts, {_PARTS_FIELD: [part.get("id") for part in parts]}


def split_large_message(message: NewMessageEntry, body_bytes_max: int = BODY_BYTES_MAX) -> list[NewEntry]:
    """A message that one request cannot carry, or with more meta than the service takes, as parts and the message.

    It has an id, and stays a message, so that no call loses its result: its long texts are shortened and say how long
    they are, and the parts, which it names, have what was given. A smaller message stays as it is.
    """
    bytes_max = body_bytes_max // 2
    meta = message.get("meta", {})
    is_large = entry_length({**message, "meta": {}}) > bytes_max
    if not is_large and byte_length(meta) <= META_BYTES_MAX:
        return [message]
    whole = {"meta": meta, "blob": message["blob"]} if is_large else {"meta": meta}
    parts, named = _parts_of(message.get("id", ""), whole, bytes_max)
    return [*parts, shorten_texts({**message, "meta": named}, bytes_max) if is_large else {**message, "meta": named}]


def read_whole_message(
    annals: Annals, session_id: str, blob: JsonObject, meta: JsonObject
) -> tuple[JsonObject, JsonObject]:
    """A message's blob and meta as they were given: put together if they are large, and without escapes."""
    ids: list[str] | None = meta.get(_PARTS_FIELD)
    whole = {} if ids is None else _read_parts(annals, session_id, ids)
    return whole.get("blob") or unescape_json(blob), whole.get("meta") or unescape_json(meta)


def _read_parts(annals: Annals, session_id: str, ids: Sequence[str]) -> JsonObject:
    parts = read_by_ids(annals, session_id, ids)
    texts = [unescape_json(part["data"])["text"] for part in parts if part["kind"] == "event"]
    return loads("".join(texts))


def read_event_data(annals: Annals, session_id: str, event: TimelineEvent) -> JsonObject:
    """An event's data as it was given: put together if it is large, and without escapes."""
    data = unescape_json(event["data"])
    ids: list[str] | None = data.get(_PARTS_FIELD)
    if ids is None:
        return data
    return _read_parts(annals, session_id, ids)
