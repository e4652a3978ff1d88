"""How LangGraph's threads are stored: the names of entries, and values. It is as in `@annals/langgraph`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ._json import dumps, encode
from ._storable import is_plain_json, stable_id

Version: TypeAlias = str | int | float


class Place(NamedTuple):
    thread_id: str
    checkpoint_ns: str
    """The graph itself (`""`) or a subgraph."""
    checkpoint_id: str
    """Empty if a config names none."""


def place_of(config: RunnableConfig) -> Place:
    configurable: Mapping[str, Any] = config.get("configurable", {})
    thread_id = configurable.get("thread_id")
    if thread_id is None:
        raise ValueError('A checkpoint needs a thread: pass {"configurable": {"thread_id": "…"}} with the config.')
    return Place(str(thread_id), configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id") or "")


def config_of(place: Place) -> RunnableConfig:
    return {"configurable": place._asdict()}


def session_id_of(thread_id: str) -> str:
    return stable_id("langgraph", thread_id)


def checkpoint_prefix(checkpoint_ns: str | None) -> str:
    """What the keys of all checkpoints begin with: those of one namespace, or of all."""
    return "checkpoint/" if checkpoint_ns is None else f"checkpoint/{_digest(checkpoint_ns)}/"


def checkpoint_key(place: Place) -> str:
    """The key of a checkpoint.

    Keys are read in ascending order, and the newest checkpoint is the one with the greatest id: so a key has the
    complement of the id's bytes, and `~`, which sorts after every digit, so that a longer id is before its beginning.
    """
    complement = bytes(255 - byte for byte in place.checkpoint_id.encode())
    return f"{checkpoint_prefix(place.checkpoint_ns)}{complement.hex()}~"


def write_prefix(place: Place) -> str:
    """What the keys of a checkpoint's pending writes begin with."""
    return f"write/{_digest(place.checkpoint_ns)}/{_digest(place.checkpoint_id)}/"


def write_key(place: Place, task_id: str, idx: int) -> str:
    return f"{write_prefix(place)}{_digest(task_id)}/{idx}"


def channel_entry_id(thread_id: str, checkpoint_ns: str, channel: str, version: Version) -> str:
    """The entry with a channel's value of one version."""
    # JavaScript writes 2.0 as 2.
    number = int(version) if isinstance(version, float) and version.is_integer() else version
    return stable_id("langgraph/channel", thread_id, checkpoint_ns, channel, dumps(number))


def stored_value(serde: SerializerProtocol, value: Any) -> dict[str, Any]:
    """A value as it stands in an event.

    What is plain JSON is stored as JSON, so that people and `@annals/langgraph` can read it, unless the serializer is
    not LangGraph's own, such as one that encrypts. All else is stored as base64. `type` is the serializer's own name
    for the form.
    """
    if type(serde) is JsonPlusSerializer and _is_readable(value):
        return {"type": "json", "json": value}
    kind, content = serde.dumps_typed(value)
    return {"type": kind, "base64": base64.b64encode(content).decode()}


def given_value(serde: SerializerProtocol, stored: Mapping[str, Any]) -> Any:
    content = encode(stored["json"]) if "json" in stored else base64.b64decode(stored["base64"])
    return serde.loads_typed((stored["type"], content))


def _is_readable(value: object) -> bool:
    try:
        # The serializer makes objects of what has the key `lc`.
        return is_plain_json(value) and '"lc":' not in dumps(value)
    except RecursionError:
        return False


def _digest(name: str) -> str:
    """Short, whatever the framework's own names are: a key has at most 255 characters."""
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
