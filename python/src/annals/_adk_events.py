"""How the sessions of the Agent Development Kit are stored: their names, events and state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from google.adk.events import Event
from google.adk.sessions import State
from google.adk.sessions.base_session_service import GetSessionConfig
from pydantic_core import to_jsonable_python

from ._async.annals import AsyncAnnals
from ._async.keyed_session import read_event_data, read_whole_message, split_large_event, split_large_message
from ._errors import AnnalsError
from ._json import dumps
from ._storable import escape_json, stable_id
from .types import JsonObject, NewEntry, NewEventEntry, NewMessageEntry, NewSession, TimelineItem

SESSION_CONFIG = "adk_python"
UPDATED_CONFIG = "adk_last_update_time"
"""The time of the newest event, by the event."""
_STATE_PREFIX = "state/"
_PAGE_LIMIT = 200
_EVENTS_MAX = 1_000
_EVENT_TYPE = "adk.event"
# Where contents have bytes: ADK writes them in the URL's alphabet, Gemini and who reads messages in the usual one.
_BYTES_FIELDS = ("data", "thoughtSignature")
_TO_USUAL = str.maketrans("-_", "+/")


class Scopes(NamedTuple):
    """Whose state a name belongs to. Each scope is a session of its own in Annals."""

    app: NewSession
    user: NewSession
    session: NewSession


class SplitState(NamedTuple):
    """A change of state by scopes, without what is temporary. Names are without their prefixes."""

    app: dict[str, Any]
    user: dict[str, Any]
    session: dict[str, Any]


def scopes_of(app_name: str, user_id: str, session_id: str) -> Scopes:
    user = escape_json(user_id)
    names = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
    return Scopes(
        app={
            "use_uuid": stable_id("adk-python/app", app_name),
            "configs": escape_json({"adk_python_app": {"app_name": app_name}}),
        },
        user={
            "use_uuid": stable_id("adk-python/user", app_name, user_id),
            "user": user,
            "configs": escape_json({"adk_python_user": {"app_name": app_name, "user_id": user_id}}),
        },
        session={
            "use_uuid": stable_id("adk-python", app_name, user_id, session_id),
            "user": user,
            "configs": escape_json({SESSION_CONFIG: names}),
        },
    )


def split_state(state: Mapping[str, Any]) -> SplitState:
    split = SplitState({}, {}, {})
    for name, value in state.items():
        if name.startswith(State.APP_PREFIX):
            split.app[name.removeprefix(State.APP_PREFIX)] = value
        elif name.startswith(State.USER_PREFIX):
            split.user[name.removeprefix(State.USER_PREFIX)] = value
        elif not name.startswith(State.TEMP_PREFIX):
            split.session[name] = value
    return split


def merged_state(split: SplitState) -> dict[str, Any]:
    """One state of three, as agents see it."""
    app = {f"{State.APP_PREFIX}{name}": value for name, value in split.app.items()}
    return {**split.session, **app, **{f"{State.USER_PREFIX}{name}": value for name, value in split.user.items()}}


def event_as_json(event: Event) -> JsonObject:
    """Without temporary state."""
    data: JsonObject = event.model_dump(mode="json", exclude_none=True, by_alias=True, fallback=str)
    delta = data.get("actions", {}).get("stateDelta", {})
    for name in [name for name in delta if name.startswith(State.TEMP_PREFIX)]:
        del delta[name]
    return data


def stored_event(session_id: str, data: JsonObject, as_message: bool, body_bytes_max: int) -> list[NewEntry]:
    """What stores an event: a message if it has content, otherwise an event. What is large is stored in parts.

    The last entry is the event itself. The same event with the same content always has the same id.
    """
    event_id = stable_id(session_id, data["id"], hashlib.sha256(dumps(data).encode(errors="surrogatepass")).hexdigest())
    adk = {name: value for name, value in data.items() if name != "content"}
    content = data.get("content")
    if not as_message or not content:
        event: NewEventEntry = {"kind": "event", "type": _EVENT_TYPE, "id": event_id, "data": data}
        return [escape_json(part) for part in split_large_event(event, body_bytes_max)]
    blob = {**content, "parts": [_with_usual_bytes(part) for part in content.get("parts", [])]}
    message: NewMessageEntry = {
        "kind": "message",
        "format": "gemini",
        "id": event_id,
        "blob": blob,
        "meta": {"adk": adk},
    }
    return [escape_json(part) for part in split_large_message(message, body_bytes_max)]


async def given_event(annals: AsyncAnnals, session_id: str, item: TimelineItem) -> Event | None:
    """The event of ADK that an entry holds; None for one that holds none, or was retracted."""
    if item.get("retracted_by") is not None:
        return None
    if item["kind"] == "message":
        blob, meta = await read_whole_message(annals, session_id, item["blob"], item["meta"])
        adk = meta.get("adk")
        return Event.model_validate({**adk, "content": blob}) if adk else None
    if item["type"] != _EVENT_TYPE:
        return None
    return Event.model_validate(await read_event_data(annals, session_id, item))


async def read_events(annals: AsyncAnnals, session_id: str, config: GetSessionConfig) -> list[Event]:
    """From the newest on, so that few recent events take few requests."""
    most = config.num_recent_events
    events: list[Event] = []
    if most == 0:
        return events
    limit = _EVENTS_MAX if most is None else min(_EVENTS_MAX, max(20, most * 2))
    async for item in annals.sessions.timeline(session_id, time_desc=True, limit=limit):
        event = await given_event(annals, session_id, item)
        if event is None:
            continue
        if config.after_timestamp is not None and event.timestamp < config.after_timestamp:
            break
        events.append(event)
        if len(events) == most:
            break
    return events[::-1]


async def compact_to(annals: AsyncAnnals, session_id: str, event: Event, known: Sequence[Event]) -> None:
    """Lets what a compaction of ADK says stand for the events that it is about, so that contexts begin with it.

    Where the service refuses that, for example because a call would be parted from its result, contexts stay as they
    were: ADK's own event is stored in any case.
    """
    compaction = event.actions.compaction
    if compaction is None:
        return
    to_seq = await _last_seq_at(annals, session_id, compaction.end_timestamp)
    if to_seq == 0:
        return
    earlier = [each.actions.compaction for each in known if each.actions.compaction and each.id != event.id]
    every = [*earlier, compaction]
    # One that goes further back and as far stands for the other as well.
    kept = [
        one
        for at, one in enumerate(every)
        if not any(
            other.start_timestamp <= one.start_timestamp and other.end_timestamp >= one.end_timestamp
            for other in every[at + 1 :]
        )
    ]
    contents = [one.compacted_content.model_dump(mode="json", by_alias=True, exclude_none=True) for one in kept]
    parts = [part for content in contents for part in content.get("parts", [])]
    blob: JsonObject = escape_json({"role": "user", "parts": parts})
    key = stable_id(session_id, "adk-python/compaction", event.id)
    try:
        await annals.sessions.compact(
            session_id, to_seq=to_seq, summary={"format": "gemini", "blob": blob}, by="adk", idempotency_key=key
        )
    except AnnalsError as error:
        if error.error not in ("invalid_request", "idempotency_key_reused"):
            raise


async def _last_seq_at(annals: AsyncAnnals, session_id: str, time: float) -> int:
    """The seq of the newest event of ADK that is not later than a time; 0 if there is none."""
    async for item in annals.sessions.timeline(session_id, time_desc=True, limit=_PAGE_LIMIT):
        event = await given_event(annals, session_id, item)
        if event is not None and event.actions.compaction is None and event.timestamp <= time:
            return item["seq"]
    return 0


async def read_state(annals: AsyncAnnals, session_id: str) -> dict[str, Any]:
    state: dict[str, Any] = {}
    try:
        async for item in annals.sessions.latest(session_id, key_prefix=_STATE_PREFIX, limit=_PAGE_LIMIT):
            if item["kind"] == "event":
                data = await read_event_data(annals, session_id, item)
                state[data["name"]] = data["value"]
    except AnnalsError as error:
        raise_unless_missing(error)
    return state


def raise_unless_missing(error: AnnalsError) -> None:
    if error.error != "session_not_found":
        raise error


def stored_state(state: Mapping[str, Any], nonce: str) -> list[NewEntry]:
    """What stores the values of names in the state of a session, a user or an app. Of a name, the newest counts."""
    values: dict[str, Any] = to_jsonable_python(state, fallback=str)
    return [
        escape_json(
            {
                "kind": "event",
                "type": "adk.state",
                "id": stable_id("adk/state", nonce, name),
                "key": _state_key(name),
                "data": {"name": name, "value": value},
            }
        )
        for name, value in values.items()
    ]


def _state_key(name: str) -> str:
    """Names have any length, keys at most 255 characters; most names are readable in theirs."""
    key = f"{_STATE_PREFIX}{escape_json(name)}"
    return key if len(key) <= 120 else f"{_STATE_PREFIX}{stable_id('adk/state', name)}"


def _with_usual_bytes(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    members: JsonObject = value  # pyright: ignore[reportUnknownVariableType]
    return {
        name: member.translate(_TO_USUAL)
        if name in _BYTES_FIELDS and isinstance(member, str)
        else _with_usual_bytes(member)
        if name == "inlineData"
        else member
        for name, member in members.items()
    }
