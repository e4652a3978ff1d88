from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, PendingWrite, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._errors import AnnalsError
from .._langgraph_places import (
    Place,
    channel_entry_id,
    checkpoint_key,
    checkpoint_prefix,
    config_of,
    given_value,
    place_of,
    session_id_of,
    write_prefix,
)
from .._waiting import AsyncStream
from ..types import JsonObject, LatestQuery
from .annals import AsyncAnnals
from .keyed_session import read_by_ids, read_event_data

_PAGE_LIMIT = 200


class Record(NamedTuple):
    """An event of a thread: a checkpoint without its channel values, a channel's value, or a pending write."""

    entry_id: str
    data: JsonObject


class AsyncThreadReader:
    """Reads one thread."""

    def __init__(self, annals: AsyncAnnals, serde: SerializerProtocol, thread_id: str) -> None:
        self._annals = annals
        self._serde = serde
        self._thread_id = thread_id
        self._session_id = session_id_of(thread_id)

    async def find(self, place: Place) -> Record | None:
        """The checkpoint at a place; the newest of the namespace if the place names none."""
        newest: LatestQuery = {"key_prefix": checkpoint_prefix(place.checkpoint_ns), "limit": 1}
        async for record in self._latest({"key": checkpoint_key(place)} if place.checkpoint_id else newest):
            return record
        return None

    def checkpoints(self, checkpoint_ns: str | None) -> AsyncStream[Record]:
        """The checkpoints of a namespace, newest first, or of all namespaces, one after the other."""
        return self._latest({"key_prefix": checkpoint_prefix(checkpoint_ns), "limit": _PAGE_LIMIT})

    def place_of(self, record: Record) -> Place:
        return Place(self._thread_id, record.data["checkpoint_ns"], record.data["checkpoint_id"])

    def metadata_of(self, record: Record) -> CheckpointMetadata:
        return given_value(self._serde, record.data["metadata"])

    async def tuples(self, records: Sequence[Record]) -> list[CheckpointTuple]:
        checkpoints: list[Checkpoint] = [given_value(self._serde, record.data["checkpoint"]) for record in records]
        ids = [self._channel_ids(record, each) for record, each in zip(records, checkpoints, strict=True)]
        stored = await self._channels({entry_id for each in ids for entry_id in each})
        tuples: list[CheckpointTuple] = []
        for record, checkpoint, channel_ids in zip(records, checkpoints, ids, strict=True):
            channels = [stored[entry_id] for entry_id in channel_ids if entry_id in stored]
            place = self.place_of(record)
            parent = record.data["parent_checkpoint_id"]
            values = {each["channel"]: given_value(self._serde, each["value"]) for each in channels}
            tuples.append(
                CheckpointTuple(
                    config=config_of(place),
                    checkpoint={**checkpoint, "channel_values": values},
                    metadata=self.metadata_of(record),
                    parent_config=config_of(place._replace(checkpoint_id=parent)) if parent else None,
                    pending_writes=await self._pending_writes(place),
                )
            )
        return tuples

    async def needed_for(self, newest: Record) -> set[Place]:
        """A checkpoint, and those before it down to where each of its delta channels has a value."""
        missing = {*self.metadata_of(newest).get("counters_since_delta_snapshot", {})}
        needed: set[Place] = set()
        record: Record | None = newest
        while record:
            needed.add(self.place_of(record))
            [found] = await self.tuples([record])
            missing -= found.checkpoint["channel_values"].keys()
            record = await self.find(place_of(found.parent_config)) if missing and found.parent_config else None
        return needed

    async def write_records(self, place: Place) -> list[Record]:
        """The pending writes of a checkpoint, in the order in which a run applies them."""
        query: LatestQuery = {"key_prefix": write_prefix(place), "limit": _PAGE_LIMIT}
        writes = [record async for record in self._latest(query)]
        return sorted(
            writes, key=lambda each: writes_sort_key(*(each.data[n] for n in ("task_path", "task_id", "idx")))
        )

    async def _pending_writes(self, place: Place) -> list[PendingWrite]:
        writes = [record.data for record in await self.write_records(place)]
        return [(each["task_id"], each["channel"], given_value(self._serde, each["value"])) for each in writes]

    def _channel_ids(self, record: Record, checkpoint: Checkpoint) -> list[str]:
        """Of the entries with the values of a checkpoint's channels."""
        versions = checkpoint["channel_versions"].items()
        return [channel_entry_id(self._thread_id, record.data["checkpoint_ns"], *version) for version in versions]

    async def _channels(self, ids: set[str]) -> dict[str, JsonObject]:
        items = await read_by_ids(self._annals, self._session_id, [*ids])
        return {
            item["id"]: await read_event_data(self._annals, self._session_id, item)
            for item in items
            if item["kind"] == "event"
        }

    async def _latest(self, query: LatestQuery) -> AsyncStream[Record]:
        try:
            async for item in self._annals.sessions.latest(self._session_id, **query):
                if item["kind"] == "event":
                    yield Record(item["id"], await read_event_data(self._annals, self._session_id, item))
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise
