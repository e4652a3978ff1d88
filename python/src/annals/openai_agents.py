"""A session for the OpenAI Agents SDK: `AnnalsSession`. It needs `annals[openai-agents]`."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import uuid4

from agents import Agent, RunResult, RunResultStreaming, RunState, SessionSettings, TResponseInputItem
from agents.items import ToolApprovalItem
from agents.memory.session_settings import resolve_session_limit

from ._approvals import WaitingCall, answers_to, ask_for_calls, reason_of
from ._async.annals import AsyncAnnals
from ._async.keyed_session import (
    append_to_keyed,
    create_session,
    read_event_data,
    read_whole_message,
    split_large_event,
    split_large_message,
)
from ._async.runs import AsyncHeldLease
from ._errors import AnnalsError
from ._json import dumps
from ._storable import BODY_BYTES_MAX, escape_json, stable_id
from .types import JsonObject, NewEntry, NewSession, RunnerRequest, TimelineEvent, TimelineItem

__all__ = ["AnnalsSession"]

# Most messages of one page, and most that one request retracts.
# In the meta of a message with which the history begins: a compaction in JavaScript's SDK replaced what is before it.
_BEGINS = "openai_agents_begins"
_MESSAGES_MAX = 1_000
# Most entries that one request retracts by their ids.
_IDS_MAX = 200
# The newest event with this key has the text of a run that waits, or null. A run belongs to the SDK of one language.
_RUN_TYPE = "openai_agents.run"
_RUN_KEY = "openai_agents.python_run"
# What an item that is none of the Responses API is stored in.
_OWN_TYPE = "openai_agents.item"
# How the SDK for JavaScript has a result's output, where it differs from the API.
_JAVASCRIPT_FIELD = "output_form"


class AnnalsSession:
    """A conversation of the OpenAI Agents SDK that is kept in Annals: its items are messages of the format `responses`.

    - `session_id`: the SDK's id for the conversation; any string. The session's own id, `id`, is made of it.
    - `user`: whose session it is: its data goes when the user is erased.
    - `configs`: what the session is created with, beside its `openai_agents_session`.
    - `session_settings`: the SDK's, such as the limit of `get_items`.
    - `body_bytes_max`: the service's `ANNALS_BODY_BYTES_MAX`, if it was changed.
    """

    def __init__(
        self,
        session_id: str,
        annals: AsyncAnnals,
        *,
        user: str | None = None,
        configs: Mapping[str, object] | None = None,
        session_settings: SessionSettings | None = None,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self.id = stable_id("openai-agents", session_id)
        self._annals = annals
        self._body_bytes_max = body_bytes_max
        all_configs = escape_json({**(configs or {}), "openai_agents_session": session_id})
        self._fence: int | None = None
        self._session: NewSession = {"use_uuid": self.id, "user": user, "configs": all_configs}

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The conversation's items since a compaction replaced those before, or the newest `limit`, in their order."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and limit <= 0:
            return []
        size = min(limit or _MESSAGES_MAX, _MESSAGES_MAX)
        messages = self._annals.sessions.messages(self.id, format="responses", limit=size, time_desc=True)
        pages: list[list[JsonObject]] = []
        try:
            # The newest page is the first; each is in order.
            async for page in messages.pages():
                begin = max((at for at, meta in enumerate(page["metas"]) if meta.get(_BEGINS) is True), default=0)
                wanted = list(zip(page["items"], page["metas"], strict=True))[begin:]
                pages.insert(0, [await self._whole(blob, meta) for blob, meta in wanted])
                is_begun = len(wanted) > 0 and wanted[0][1].get(_BEGINS) is True
                if is_begun or (limit is not None and sum(map(len, pages)) >= limit):
                    break
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise
        items = [item for page_items in pages for item in page_items]
        return [_item_of(item) for item in (items if limit is None else items[-limit:])]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items; more than one request carries in several."""
        key = secrets.token_hex(16)
        blobs = [cast(JsonObject, item) for item in items]
        try:
            await self._append([_own(blob) if blob.get("type") == _OWN_TYPE else blob for blob in blobs], key)
        except AnnalsError as error:
            # The service takes any item that says what it is, and refuses one that is not as its type says.
            if error.error != "invalid_request":
                raise
            await self._append([_own(blob) for blob in blobs], key, attempt=":own")

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the newest item; no two callers get the same one."""
        for item in await self._retract(1):
            if item["kind"] == "message":
                return _item_of(await self._whole(item["blob"], item["meta"]))
        return None

    async def clear_session(self) -> None:
        """Takes all items out of the conversation; its log keeps them."""
        while len(await self._retract(_MESSAGES_MAX)) == _MESSAGES_MAX:
            pass

    @asynccontextmanager
    async def with_lease(
        self, *, owner: str, ttl_ms: int = 30_000, wait_ms: int = 0
    ) -> AsyncGenerator[AsyncHeldLease, None]:
        """Is the session's only runner for a `with` block.

        What this object writes meanwhile is refused as soon as somebody else has the lease. Raises AnnalsError with
        `leased` if somebody else holds it after `wait_ms`.
        """
        await create_session(self._annals, self._session)
        async with self._annals.runs.with_lease(self.id, owner=owner, ttl_ms=ttl_ms, wait_ms=wait_ms) as lease:
            self._fence = lease.fence
            try:
                yield lease
            finally:
                self._fence = None

    async def checkpoint(self, result: RunResult | RunResultStreaming) -> list[RunnerRequest]:
        """Stores where a run stands, so that any process can go on with it.

        Opens a request for each call that needs an approval, and returns them; none if the run waits for nothing.
        """
        calls = result.interruptions
        if not calls and await self._waiting() is None:
            return []
        checkpoint_id = str(uuid4())
        data = {"state": result.to_state().to_string() if calls else None}
        events = split_large_event(
            {"kind": "event", "type": _RUN_TYPE, "key": _RUN_KEY, "id": checkpoint_id, "data": data},
            self._body_bytes_max,
        )
        await self._append_entries(events, checkpoint_id)
        return await self._ask(checkpoint_id, calls)

    async def resume(self, agent: Agent[Any]) -> RunState[Any, Agent[Any]] | None:
        """The run that waits in this session, with what was decided, as soon as all of its requests are answered.

        None if none waits. Run the agent with it. What a process stored that was killed after the answer is retracted
        first.
        """
        waiting = await self._waiting()
        if waiting is None:
            return None
        event, text = waiting
        state = await RunState.from_string(agent, text)
        calls = state.get_interruptions()
        # A process that was killed may have asked for some of them only.
        answers = await answers_to(self._annals, await self._ask(event["id"], calls))
        for call, answer in zip(calls, answers, strict=True):
            if answer.get("decision") == "approve":
                state.approve(call)
            else:
                state.reject(call, rejection_message=reason_of(answer))
        await self._take_back(event["seq"], {call.call_id for call in calls})
        return state

    async def _waiting(self) -> tuple[TimelineEvent, str] | None:
        """The newest run, if it waits, and its text."""
        try:
            newest = (await self._annals.sessions.latest(self.id, key=_RUN_KEY).page())["items"]
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise
            return None
        if not newest or newest[0]["kind"] != "event":
            return None
        text = (await read_event_data(self._annals, self.id, newest[0]))["state"]
        return None if text is None else (newest[0], text)

    async def _ask(self, checkpoint_id: str, calls: Sequence[ToolApprovalItem]) -> list[RunnerRequest]:
        waiting = [_waiting_call(checkpoint_id, index, call) for index, call in enumerate(calls)]
        return await ask_for_calls(self._annals, self.id, waiting, self._fence)

    async def _take_back(self, after_seq: int, call_ids: set[str | None]) -> None:
        """Retracts the results of these calls, and the messages after the first of them."""
        ids: list[str] = []
        later = self._annals.sessions.timeline(self.id, after_seq=after_seq, kind="message", limit=_MESSAGES_MAX)
        async for item in later:
            if item["kind"] != "message" or item.get("retracted_by") is not None:
                continue
            blob = item["blob"]
            if ids or (str(blob.get("type")).endswith("_output") and blob.get("call_id") in call_ids):
                ids.append(item["id"])
        for start in range(0, len(ids), _IDS_MAX):
            which = ids[start : start + _IDS_MAX]
            await self._annals.sessions.retract(self.id, ids=which, fence=self._fence)

    async def _append(self, blobs: list[JsonObject], key: str, attempt: str = "") -> None:
        entries: list[NewEntry] = []
        for index, blob in enumerate(blobs):
            message_id = stable_id(key, f"{index}")
            entries += split_large_message(
                {"kind": "message", "format": "responses", "id": message_id, "blob": blob}, self._body_bytes_max
            )
        await self._append_entries(entries, f"{key}{attempt}")

    async def _append_entries(self, entries: Sequence[NewEntry], key: str) -> None:
        await append_to_keyed(
            self._annals,
            self._session,
            entries,
            idempotency_key=key,
            keeps_stored=True,
            body_bytes_max=self._body_bytes_max,
            fence=self._fence,
        )

    async def _whole(self, blob: JsonObject, meta: JsonObject) -> JsonObject:
        return (await read_whole_message(self._annals, self.id, blob, meta))[0]

    async def _retract(self, last: int) -> list[TimelineItem]:
        """The newest so many messages, which nobody else gets."""
        try:
            return (await self._annals.sessions.retract(self.id, last=last, kind="message", fence=self._fence))["items"]
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise
            return []


def _waiting_call(checkpoint_id: str, index: int, call: ToolApprovalItem) -> WaitingCall:
    raw = cast(Mapping[str, Any], call.raw_item if isinstance(call.raw_item, dict) else vars(call.raw_item))
    return {
        # Whoever resumes the run asks for the same request; a later wait for the same call asks anew.
        "id": stable_id("openai-agents", "approval", checkpoint_id, f"{index}"),
        "name": call.name or str(raw.get("type", "tool")),
        # Calls of a shell or a patch have something else in the place of arguments.
        "arguments": call.arguments or dumps(raw.get("action") or raw.get("operation") or {}),
        "text": f"Call {call.call_id or index + 1} of {call.agent.name}",
    }


def _own(blob: JsonObject) -> JsonObject:
    return {"type": _OWN_TYPE, "item": blob}


def _item_of(stored: JsonObject) -> TResponseInputItem:
    given: dict[str, Any] = stored
    if given.get("type") == _OWN_TYPE:
        given = given["item"]
    elif given.get("type") == "function_call_output":
        given = {name: value for name, value in given.items() if name != _JAVASCRIPT_FIELD}
    return cast(TResponseInputItem, given)
