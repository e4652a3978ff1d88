from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._langgraph_places import Place, config_of, place_of, stored_value
from .._storable import BODY_BYTES_MAX, unescape_json
from .._waiting import Stream
from .annals import Annals
from .langgraph_reader import Record, ThreadReader
from .langgraph_writer import CheckpointOrder, ThreadWriter

# How many checkpoints a list reads the values of at once.
_TUPLES_AT_ONCE = 20
# A version is a whole number and a random fraction, exact up to 2^22 versions.
_VERSION_FRACTIONS = 2**30


class AnnalsSaver(BaseCheckpointSaver[float]):
    """Keeps the threads of LangGraph in Annals: a thread is a session.

    - `user`: the user that new threads belong to.
    - `serde`: replaces LangGraph's serializer, such as by one that encrypts.
    - `body_bytes_max`: the service's `ANNALS_BODY_BYTES_MAX`, if it was changed.
    """

    def __init__(
        self,
        annals: Annals,
        *,
        user: str | None = None,
        serde: SerializerProtocol | None = None,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        super().__init__(serde=serde)
        self._annals = annals
        self._user = user
        self._body_bytes_max = body_bytes_max
        self._order = CheckpointOrder()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        place = place_of(config)
        reader = self._reader(place.thread_id)
        record = reader.find(place)
        return (reader.tuples([record]))[0] if record else None

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        parent = place_of(config)
        place = parent._replace(checkpoint_id=checkpoint["id"])
        with self._order.turn(place) as before:
            writer = self._writer(place.thread_id)
            values = checkpoint["channel_values"]
            events = [
                writer.channel(
                    {
                        "checkpoint_ns": place.checkpoint_ns,
                        "channel": channel,
                        "version": version,
                        "value": stored_value(self.serde, values[channel]),
                    }
                )
                for channel, version in new_versions.items()
                if channel in values
            ]
            kept = {name: value for name, value in checkpoint.items() if name != "channel_values"}
            record = {
                "checkpoint_ns": place.checkpoint_ns,
                "checkpoint_id": place.checkpoint_id,
                "parent_checkpoint_id": parent.checkpoint_id or None,
                "checkpoint": stored_value(self.serde, kept),
                "metadata": stored_value(self.serde, get_checkpoint_metadata(config, metadata)),
            }
            # The checkpoint comes last: if all is too much for one request, nobody sees it before its channels.
            writer.append([*events, writer.checkpoint(record)], before)
        return config_of(place)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        place = place_of(config)
        if not place.checkpoint_id:
            raise ValueError('Storing writes needs the "checkpoint_id" that they belong to in config["configurable"].')
        with self._order.turn(place) as before:
            writer = self._writer(place.thread_id)
            events = [
                writer.write(
                    {
                        "checkpoint_ns": place.checkpoint_ns,
                        "checkpoint_id": place.checkpoint_id,
                        "task_id": task_id,
                        "task_path": task_path,
                        "idx": WRITES_IDX_MAP.get(channel, index),
                        "channel": channel,
                        "value": stored_value(self.serde, value),
                    }
                )
                for index, (channel, value) in enumerate(writes)
            ]
            writer.append(events, before)

    def delete_thread(self, thread_id: str) -> None:
        self._writer(thread_id).delete()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Retracts the checkpoints of these runs and their writes, in all threads; the log keeps them."""
        if not run_ids:
            return
        for thread_id in self._threads(None):
            reader = self._reader(thread_id)
            while found := [
                each for each in reader.checkpoints(None) if reader.metadata_of(each).get("run_id") in run_ids
            ]:
                self._retract(reader, thread_id, found)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Retracts all checkpoints but the newest of each namespace, and what its delta channels are made of.

        The log keeps them. `strategy="delete"` deletes the threads.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f'strategy is "keep_latest" or "delete", not "{strategy}".')
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            reader = self._reader(thread_id)
            kept: dict[str, set[Place]] = {}
            for record in reader.checkpoints(None):
                if record.data["checkpoint_ns"] not in kept:
                    kept[record.data["checkpoint_ns"]] = reader.needed_for(record)
            needed = set[Place]().union(*kept.values())
            while found := [each for each in reader.checkpoints(None) if reader.place_of(each) not in needed]:
                self._retract(reader, thread_id, found)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes. A copy that broke off is completed by repeating it."""
        self._writer(target_thread_id).copy_from(source_thread_id)

    def get_next_version(self, current: float | None, channel: None) -> float:
        """A version after `current` that no other run makes.

        After a fork, two branches of a thread count on from the same version, and each keeps its own values.
        """
        return int(current or 0) + 1 + secrets.randbelow(_VERSION_FRACTIONS) / _VERSION_FRACTIONS

    def _reader(self, thread_id: str) -> ThreadReader:
        return ThreadReader(self._annals, self.serde, thread_id)

    def _writer(self, thread_id: str) -> ThreadWriter:
        return ThreadWriter(self._annals, thread_id, self._user, self._body_bytes_max)

    def _retract(self, reader: ThreadReader, thread_id: str, found: Sequence[Record]) -> None:
        writes = [each for record in found for each in reader.write_records(reader.place_of(record))]
        self._writer(thread_id).retract([each.entry_id for each in (*found, *writes)])

    def _threads(self, config: RunnableConfig | None) -> Stream[str]:
        if config and "thread_id" in config.get("configurable", {}):
            yield place_of(config).thread_id
            return
        for session in self._annals.sessions.list(filter_by_configs={"langgraph": {}}, limit=200):
            yield unescape_json(session["configs"])["langgraph"]["thread_id"]

    def _list_thread(
        self, thread_id: str, config: RunnableConfig, filter_: dict[str, Any], before: str | None, limit: int | None
    ) -> Stream[CheckpointTuple]:
        configurable = config.get("configurable", {})
        checkpoint_id = configurable.get("checkpoint_id")
        reader = self._reader(thread_id)
        found: list[Record] = []
        left = limit
        for record in reader.checkpoints(configurable.get("checkpoint_ns")):
            if left == 0:
                break
            if before and record.data["checkpoint_id"] >= before:
                continue
            if checkpoint_id and record.data["checkpoint_id"] != checkpoint_id:
                continue
            metadata = reader.metadata_of(record)
            if not all(metadata.get(name) == value for name, value in filter_.items()):
                continue
            found.append(record)
            left = None if left is None else left - 1
            if len(found) == _TUPLES_AT_ONCE:
                for each in reader.tuples(found):
                    yield each
                found = []
        for each in reader.tuples(found):
            yield each

    # Last, because in a class that has it, `list` is this method.
    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        left = limit
        before_id = get_checkpoint_id(before) if before else None
        for thread_id in self._threads(config):
            for each in self._list_thread(thread_id, config or {}, filter or {}, before_id, left):
                yield each
                left = None if left is None else left - 1
            if left == 0:
                return
