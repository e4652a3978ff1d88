from __future__ import annotations

import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from .._errors import AnnalsError
from .._json import dumps
from .._langgraph_places import Place, channel_entry_id, checkpoint_key, session_id_of, write_key
from .._storable import escape_json, idempotency_key, stable_id
from .._waiting import Event
from ..types import NewEventEntry, NewSession
from .annals import Annals
from .keyed_session import PART_TYPE, append_to_keyed, read_event_data, split_large_event

# Of one retraction, and of one page of a copy.
_AT_ONCE_MAX = 200


class _Step:
    """What is in flight of one checkpoint, and what that waits for."""

    def __init__(self, checkpoint_id: str, before: Event | None) -> None:
        self.checkpoint_id, self.before = checkpoint_id, before
        self.stored, self.in_flight = Event(), 0


class CheckpointOrder:
    """Appends what belongs to a checkpoint after what belonged to the last one: LangGraph goes on while it stores."""

    def __init__(self) -> None:
        self._newest: dict[str, _Step] = {}
        self._lock = Lock()

    @contextmanager
    def turn(self, place: Place) -> Generator[Event | None]:
        """Surrounds what is made and appended for a checkpoint. Gives what the append has to wait for."""
        with self._lock:
            step = self._newest.get(place.thread_id)
            if step is None or step.checkpoint_id != place.checkpoint_id:
                step = self._newest[place.thread_id] = _Step(place.checkpoint_id, step.stored if step else None)
            step.in_flight += 1
        try:
            yield step.before
        finally:
            with self._lock:
                step.in_flight -= 1
                if step.in_flight == 0:
                    step.stored.set()
                    if self._newest.get(place.thread_id) is step:
                        del self._newest[place.thread_id]


class ThreadWriter:
    """Writes one thread."""

    def __init__(self, annals: Annals, thread_id: str, user: str | None, body_bytes_max: int) -> None:
        self._annals = annals
        self._thread_id = thread_id
        self._body_bytes_max = body_bytes_max
        self._session_id = session_id_of(thread_id)
        configs = escape_json({"langgraph": {"thread_id": thread_id}})
        self._session: NewSession = {"use_uuid": self._session_id, "configs": configs, "user": user}

    def channel(self, data: Mapping[str, Any]) -> NewEventEntry:
        """The event with a channel's value: `checkpoint_ns`, `channel`, `version`, `value`."""
        version = data["version"]
        event_id = channel_entry_id(self._thread_id, data["checkpoint_ns"], data["channel"], version)
        return {"kind": "event", "type": "langgraph.channel", "id": event_id, "data": data}

    def checkpoint(self, data: Mapping[str, Any]) -> NewEventEntry:
        event_id = stable_id("langgraph/checkpoint", self._thread_id, dumps(data))
        key = checkpoint_key(self._place_of(data))
        return {"kind": "event", "type": "langgraph.checkpoint", "id": event_id, "data": data, "key": key}

    def write(self, data: Mapping[str, Any], nonce: str | None = None) -> NewEventEntry:
        """The event with a pending write.

        The first write of an index stays. Of errors, interrupts and the like (below 0) the last does: each is new,
        unless a `nonce` names it.
        """
        place, task_id, idx = self._place_of(data), data["task_id"], data["idx"]
        nth = "" if idx >= 0 else nonce or secrets.token_hex(16)
        event_id = stable_id("langgraph/write", *place, task_id, f"{idx}", nth)
        key = write_key(place, task_id, idx)
        return {"kind": "event", "type": "langgraph.write", "id": event_id, "data": data, "key": key}

    def append(self, events: Sequence[NewEventEntry], before: Event | None = None) -> None:
        if before:
            before.wait()
        if not events:
            return
        entries = [entry for event in events for entry in split_large_event(event, self._body_bytes_max)]
        append_to_keyed(
            self._annals,
            self._session,
            entries,
            idempotency_key=idempotency_key("langgraph", self._thread_id, dumps(events)),
            keeps_stored=True,
            body_bytes_max=self._body_bytes_max,
        )

    def retract(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), _AT_ONCE_MAX):
            self._annals.sessions.retract(self._session_id, ids=[*ids[start : start + _AT_ONCE_MAX]])

    def copy_from(self, thread_id: str) -> None:
        """Appends what another thread has. A copy that broke off is completed by repeating it."""
        source = session_id_of(thread_id)
        try:
            for page in self._annals.sessions.timeline(source, kind="event", limit=_AT_ONCE_MAX).pages():
                events: list[NewEventEntry] = []
                for item in page["items"]:
                    if item["kind"] != "event" or item["type"] == PART_TYPE or item.get("retracted_by") is not None:
                        continue
                    data = read_event_data(self._annals, source, item)
                    if item["type"] == "langgraph.channel":
                        events.append(self.channel(data))
                    elif item["type"] == "langgraph.checkpoint":
                        events.append(self.checkpoint(data))
                    elif item["type"] == "langgraph.write":
                        events.append(self.write(data, nonce=item["id"]))
                self.append(events)
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise

    def delete(self) -> None:
        try:
            self._annals.sessions.delete(self._session_id)
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise

    def _place_of(self, data: Mapping[str, Any]) -> Place:
        return Place(self._thread_id, data["checkpoint_ns"], data["checkpoint_id"])
