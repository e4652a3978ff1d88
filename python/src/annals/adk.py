"""A session service for Google's Agent Development Kit: `AnnalsSessionService`. It needs `annals[adk]`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai.types import Content

from ._adk_approvals import LongRunningCall, answer_to, unanswered
from ._adk_events import (
    SESSION_CONFIG,
    UPDATED_CONFIG,
    Scopes,
    SplitState,
    compact_to,
    event_as_json,
    merged_state,
    raise_unless_missing,
    read_events,
    read_state,
    scopes_of,
    split_state,
    stored_event,
    stored_state,
)
from ._approvals import answers_to, ask_for_calls
from ._async.annals import AsyncAnnals
from ._async.keyed_session import create_session, id_of
from ._errors import AnnalsError
from ._storable import BODY_BYTES_MAX, cut_into_batches, escape_json, unescape_json
from .types import NewEntry, RunnerRequest, SessionAppend
from .types import Session as StoredSession

__all__ = ["AnnalsSessionService"]

_PAGE_LIMIT = 200


class AnnalsSessionService(BaseSessionService):
    """Keeps the sessions of the Agent Development Kit in Annals, with the state that those of a user or an app share.

    An event and all the state that it changes are stored in one transaction.

    - `body_bytes_max`: the service's `ANNALS_BODY_BYTES_MAX`, if it was changed.
    """

    def __init__(self, annals: AsyncAnnals, *, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self._annals = annals
        self._body_bytes_max = body_bytes_max
        # The appends of one process to a session do not compete.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Raises AlreadyExistsError if the user has a session with this id."""
        session_id = (session_id or "").strip() or str(uuid4())
        scopes = scopes_of(app_name, user_id, session_id)
        # No other session has this nonce, so a session that exists is not taken for the new one.
        nonce = secrets.token_hex(16)
        try:
            await self._annals.sessions.create(
                **{**scopes.session, "configs": {**(scopes.session.get("configs") or {}), "nonce": nonce}}
            )
        except AnnalsError as error:
            if error.error != "session_exists":
                raise
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from error
        appends = _appends(scopes, split_state(state or {}), nonce)
        if appends:
            await self._append_together(scopes, appends)
        created = await self.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
        if created is None:
            raise SessionNotFoundError(f"Session {session_id} was deleted while it was created.")
        return created

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        session = Session(id=session_id.strip(), app_name=app_name, user_id=user_id)
        return session if await self._read(session, config or GetSessionConfig()) else None

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of a user or an app with their state, the one that changed last at the end."""
        names = {"app_name": app_name} if user_id is None else {"app_name": app_name, "user_id": user_id}
        filter_ = escape_json({SESSION_CONFIG: names})
        sessions: list[Session] = []
        shared: dict[str, dict[str, Any]] = {}
        async for stored in self._annals.sessions.list(filter_by_configs=filter_, limit=_PAGE_LIMIT):
            given = unescape_json(stored["configs"][SESSION_CONFIG])
            scopes = scopes_of(**given)
            for scope in (scopes.app, scopes.user):
                if id_of(scope) not in shared:
                    shared[id_of(scope)] = await read_state(self._annals, id_of(scope))
            own = await read_state(self._annals, id_of(scopes.session))
            state = merged_state(SplitState(shared[id_of(scopes.app)], shared[id_of(scopes.user)], own))
            session = Session(id=given["session_id"], app_name=app_name, user_id=given["user_id"], state=state)
            session.last_update_time = _updated_at(stored)
            sessions.append(session)
        sessions.sort(key=lambda each: (each.last_update_time, each.user_id, each.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes a session with its events and its own state."""
        try:
            await self._annals.sessions.delete(id_of(scopes_of(app_name, user_id, session_id.strip()).session))
        except AnnalsError as error:
            raise_unless_missing(error)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await read_state(self._annals, id_of(scopes_of(app_name, user_id, "").user))

    def annals_id(self, *, app_name: str, user_id: str, session_id: str) -> str:
        """The id of a session in Annals, whose lease keeps a second runner away."""
        return id_of(scopes_of(app_name, user_id, session_id.strip()).session)

    async def ask_for_approvals(self, *, app_name: str, user_id: str, session_id: str) -> list[RunnerRequest]:
        """Opens a request for each call of a long-running tool, and each that needs a confirmation.

        Only for those that nobody has answered, once; returns them. Call it when a run has ended.
        """
        return (await self._ask(app_name, user_id, session_id))[1]

    async def resume(self, *, app_name: str, user_id: str, session_id: str) -> Content | None:
        """The message to run the agent with, as soon as all of these are answered, in this process or another.

        None if the session waits for nothing.
        """
        calls, requests = await self._ask(app_name, user_id, session_id)
        return answer_to(calls, await answers_to(self._annals, requests)) if calls else None

    async def _ask(
        self, app_name: str, user_id: str, session_id: str
    ) -> tuple[list[LongRunningCall], list[RunnerRequest]]:
        annals_id = self.annals_id(app_name=app_name, user_id=user_id, session_id=session_id)
        session = await self.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
        calls = unanswered(annals_id, session.events if session else ())
        return calls, await ask_for_calls(self._annals, annals_id, [each.asked for each in calls])

    async def append_event(self, session: Session, event: Event) -> Event:
        """Stores an event with the state that it changes.

        If somebody else has appended since the session was read, the session is read again first, so that it shows
        what is stored before the event. An event that is stored already is not stored again.

        Raises SessionNotFoundError if there is no such session.
        """
        if event.partial:
            return event
        scopes = scopes_of(session.app_name, session.user_id, session.id)
        lock = self._locks.setdefault(id_of(scopes.session), asyncio.Lock())
        async with lock:
            await self._store(session, event, scopes)
            await compact_to(self._annals, id_of(scopes.session), event, session.events)
            if any(each == event for each in session.events if each.id == event.id):
                return event
            appended = await super().append_event(session, event)
            session.last_update_time = event.timestamp
            return appended

    async def _store(self, session: Session, event: Event, scopes: Scopes) -> None:
        session_id = id_of(scopes.session)
        data = event_as_json(event)
        state = split_state(data.get("actions", {}).get("stateDelta", {}))
        as_message = True
        while True:
            try:
                entries = stored_event(session_id, data, as_message, self._body_bytes_max)
                seq = await self._append_parts(session_id, entries[:-1], _seq_of(session))
                appends = _appends(scopes, state, entries[-1].get("id", ""), entries[-1])
                appends[0]["if_match"] = seq
                appends[0]["configs_patch"] = {UPDATED_CONFIG: event.timestamp}
                stored = await self._append_together(scopes, appends)
                _set_seq(session, max(seq, *stored))
            except AnnalsError as error:
                if error.error == "invalid_request" and as_message:
                    # The service knows which contents it can read. It takes any event.
                    as_message = False
                elif error.error == "seq_conflict":
                    if not await self._read(session, GetSessionConfig()):
                        raise SessionNotFoundError(f"Session {session.id} not found.") from error
                else:
                    raise
            else:
                return

    async def _append_parts(self, session_id: str, parts: Sequence[NewEntry], seq: int) -> int:
        """Appends the parts of a large event, and returns the seq after them."""
        for batch in cut_into_batches(parts, self._body_bytes_max):
            answer = await self._annals.sessions.append_batch(session_id, batch, if_match=seq)
            seq = max(seq, *(item["seq"] for item in answer["items"]))
        return seq

    async def _append_together(self, scopes: Scopes, appends: list[SessionAppend]) -> list[int]:
        """The seqs of the first session's entries. Sessions of app and user are created by their first state."""
        for is_last in (False, True):
            try:
                answer = await self._annals.sessions.append_to_sessions(appends)
                return [item["seq"] for item in answer["appends"][0]["items"]]
            except AnnalsError as error:
                raise_unless_missing(error)
                if is_last:
                    raise SessionNotFoundError(
                        "The session was not found: it does not exist, or was deleted."
                    ) from error
            for scope in (scopes.app, scopes.user):
                await create_session(self._annals, scope)
        raise AssertionError

    async def _read(self, session: Session, config: GetSessionConfig) -> bool:
        """Makes a session object show what is stored; False if there is no such session."""
        scopes = scopes_of(session.app_name, session.user_id, session.id)
        session_id = id_of(scopes.session)
        try:
            # The seq is read first: whatever is stored meanwhile makes the next append read again.
            newest = await self._annals.sessions.timeline(session_id, time_desc=True, limit=1).page()
            stored = await self._annals.sessions.get(session_id)
            events = await read_events(self._annals, session_id, config)
        except AnnalsError as error:
            raise_unless_missing(error)
            return False
        states = await asyncio.gather(*(read_state(self._annals, id_of(scope)) for scope in scopes))
        temporary = {name: value for name, value in session.state.items() if name.startswith("temp:")}
        session.events = events
        session.state = {**merged_state(SplitState(*states)), **temporary}
        session.last_update_time = _updated_at(stored)
        _set_seq(session, newest["items"][0]["seq"] if newest["items"] else 0)
        return True


def _appends(scopes: Scopes, state: SplitState, nonce: str, event: NewEntry | None = None) -> list[SessionAppend]:
    """What stores a change of state, and an event with it if there is one. The session's own comes first."""
    appends: list[SessionAppend] = []
    for scope, change in ((scopes.session, state.session), (scopes.app, state.app), (scopes.user, state.user)):
        entries = stored_state(change, f"{nonce}/{id_of(scope)}")
        if event is not None and scope is scopes.session:
            entries = [event, *entries]
        if entries:
            appends.append({"session_id": id_of(scope), "entries": entries})
    return appends


# The seq up to which a session object shows its log stands where ADK's own services have their revisions.
def _seq_of(session: Session) -> int:
    marker = session._storage_update_marker  # pyright: ignore[reportPrivateUsage]
    if marker is None:
        raise AnnalsError(409, "seq_conflict", "The session was never read.")
    return int(marker)


def _set_seq(session: Session, seq: int) -> None:
    session._storage_update_marker = f"{seq}"  # pyright: ignore[reportPrivateUsage]


def _updated_at(stored: StoredSession) -> float:
    """Seconds since 1970."""
    newest = stored["configs"].get(UPDATED_CONFIG)
    return (
        datetime.fromisoformat(stored["created_at"].replace("Z", "+00:00")).timestamp()
        if newest is None
        else float(newest)
    )
