"""What ADK's own tests ask of every session service, and what several runners ask of one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types

from annals import AsyncAnnals
from annals._storable import stable_id
from annals.adk import AnnalsSessionService

from .service import KillableNode, Service

pytestmark = pytest.mark.anyio


def named(**other: str) -> dict[str, Any]:
    return {"app_name": "app", "user_id": "alice", "session_id": "one", **other}


NAME = named()


@pytest.fixture
async def annals(service: Service) -> AsyncIterator[AsyncAnnals]:
    async with AsyncAnnals(url=service.url, token=service.new_project()) as annals:
        yield annals


@pytest.fixture
def sessions(annals: AsyncAnnals) -> AnnalsSessionService:
    return AnnalsSessionService(annals)


def said(text: str, state: dict[str, Any] | None = None, **more: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    actions = EventActions(state_delta={} if state is None else state)
    return Event(author="user", invocation_id="run", content=content, actions=actions, **more)


def texts_of(session: Session | None) -> list[str | None]:
    assert session
    return [event.content.parts[0].text for event in session.events if event.content and event.content.parts]


async def read(sessions: AnnalsSessionService, **name: Any) -> Session:
    session = await sessions.get_session(**{**NAME, **name})
    assert session
    return session


async def test_a_session_is_read_as_it_was_created_and_can_be_deleted(sessions: AnnalsSessionService) -> None:
    assert await sessions.get_session(**NAME) is None
    created = await sessions.create_session(app_name="app", user_id="alice", state={"key": {"deep": "\0"}})
    assert created.state == {"key": {"deep": "\0"}}
    assert created.last_update_time <= time.time()
    assert await read(sessions, session_id=created.id) == created
    for _ in range(2):
        await sessions.delete_session(app_name="app", user_id="alice", session_id=created.id)
    assert await sessions.get_session(app_name="app", user_id="alice", session_id=created.id) is None


async def test_an_id_is_taken_once_by_each_user_and_spaces_around_it_do_not_count(
    sessions: AnnalsSessionService,
) -> None:
    mine = await sessions.create_session(**NAME)
    await sessions.append_event(mine, said("mine"))
    for session_id in ("one", " one "):
        with pytest.raises(AlreadyExistsError):
            await sessions.create_session(**named(session_id=session_id))
    await sessions.create_session(**named(user_id="bob"))
    assert (await read(sessions, user_id="bob")).events == []
    assert texts_of(await read(sessions, session_id=" one ")) == ["mine"]
    await sessions.delete_session(**named(session_id="one "))
    assert await sessions.get_session(**NAME) is None


async def test_state_belongs_to_a_session_a_user_or_an_app_and_temporary_state_to_none(
    sessions: AnnalsSessionService,
) -> None:
    session = await sessions.create_session(**NAME, state={"app:a": 1, "user:u": [1], "own": 1, "temp:t": 1})
    assert session.state == {"app:a": 1, "user:u": [1], "own": 1}
    event = said("hello", {"app:b": 2, "user:v": 2, "own": 2, "temp:t": 2})
    await sessions.append_event(session, event)
    assert session.state == {"app:a": 1, "app:b": 2, "user:u": [1], "user:v": 2, "own": 2, "temp:t": 2}
    stored = await read(sessions)
    assert stored.state == {"app:a": 1, "app:b": 2, "user:u": [1], "user:v": 2, "own": 2}
    assert stored.events[0].actions.state_delta == {"app:b": 2, "user:v": 2, "own": 2}
    assert await sessions.get_user_state(app_name="app", user_id="alice") == {"u": [1], "v": 2}
    assert await sessions.get_user_state(app_name="app", user_id="bob") == {}
    other = await sessions.create_session(app_name="app", user_id="alice")
    assert other.state == {"app:a": 1, "app:b": 2, "user:u": [1], "user:v": 2}
    stranger = await sessions.create_session(app_name="app", user_id="bob")
    assert stranger.state == {"app:a": 1, "app:b": 2}


async def test_sessions_are_listed_with_their_state_by_their_last_event(sessions: AnnalsSessionService) -> None:
    for session_id in ("a", "b", "c"):
        await sessions.create_session(**named(session_id=session_id), state={"own": session_id, "user:u": 1})
    await sessions.create_session(**named(user_id="bob"))
    await sessions.append_event(await read(sessions, session_id="a"), said("later", timestamp=time.time() + 10))
    listed = (await sessions.list_sessions(app_name="app", user_id="alice")).sessions
    assert [each.id for each in listed] == ["b", "c", "a"]
    assert [each.state for each in listed] == [{"own": each.id, "user:u": 1} for each in listed]
    assert listed[-1].events == []
    assert len((await sessions.list_sessions(app_name="app")).sessions) == 4
    assert (await sessions.list_sessions(app_name="none")).sessions == []


async def test_an_event_comes_back_whole_with_bytes_and_the_time_of_its_session(sessions: AnnalsSessionService) -> None:
    session = await sessions.create_session(**NAME)
    content = types.Content(
        role="user",
        parts=[
            types.Part.from_bytes(data=bytes(range(256)), mime_type="image/png"),
            types.Part(
                function_call=types.FunctionCall(name="find", args={"n": 1, "data": "-_"}),
                thought_signature=b"\xff\xfe",
            ),
        ],
    )
    entry_point = types.SearchEntryPoint(sdk_blob=b"\xff\xfe")
    event = Event(
        invocation_id="run",
        author="user",
        content=content,
        timestamp=session.last_update_time + 10.123456,
        turn_complete=True,
        actions=EventActions(artifact_delta={"file": 0}, transfer_to_agent="agent", escalate=True),
        long_running_tool_ids={"tool1"},
        error_code="code",
        interrupted=True,
        grounding_metadata=types.GroundingMetadata(search_entry_point=entry_point, web_search_queries=["q"]),
        usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=1, total_token_count=2),
        custom_metadata={"key": "\0\ufdd0"},
        input_transcription=types.Transcription(text="spoken", finished=True),
    )
    await sessions.append_event(session, event)
    await sessions.append_event(session, Event(author="agent", timestamp=event.timestamp))
    assert await read(sessions) == session
    assert session.events[0] == event
    assert session.last_update_time == event.timestamp


async def test_an_event_that_is_delivered_again_is_stored_once_and_partial_ones_are_not(
    sessions: AnnalsSessionService,
) -> None:
    session = await sessions.create_session(**NAME)
    await sessions.append_event(session, said("hel", {"a": 1}, partial=True))
    assert (session.events, session.state) == ([], {})
    event = said("hello", {"n": 1})
    stale = await read(sessions)
    await sessions.append_event(session, event)
    await sessions.append_event(session, said("more", {"n": 2}))
    for again in (session, stale):
        await sessions.append_event(again, event.model_copy(deep=True))
        assert texts_of(again) == ["hello", "more"][: len(again.events)]
    # Another event that has only the same id is another one.
    await sessions.append_event(session, said("other", id=event.id))
    stored = await read(sessions)
    assert (texts_of(stored), stored.state) == (["hello", "more", "other"], {"n": 2})


async def test_the_newest_events_or_those_from_a_time_on_are_read(sessions: AnnalsSessionService) -> None:
    session = await sessions.create_session(**NAME)
    for n in range(1, 6):
        await sessions.append_event(session, said(f"{n}", {"n": n}, timestamp=n))
    for config, expected in [
        (GetSessionConfig(num_recent_events=3), ["3", "4", "5"]),
        (GetSessionConfig(num_recent_events=0), []),
        (GetSessionConfig(after_timestamp=4.0), ["4", "5"]),
        (GetSessionConfig(after_timestamp=50.0), []),
        (GetSessionConfig(after_timestamp=4.0, num_recent_events=3), ["4", "5"]),
    ]:
        found = await read(sessions, config=config)
        assert (texts_of(found), found.state) == (expected, {"n": 5})


async def test_a_deleted_session_cannot_be_appended_to(sessions: AnnalsSessionService) -> None:
    session = await sessions.create_session(**NAME, state={"user:u": 1, "own": 2})
    await sessions.delete_session(**NAME)
    for lost in (session, Session(id="never", app_name="app", user_id="alice")):
        with pytest.raises(SessionNotFoundError):
            await sessions.append_event(lost, said("late", {"app:a": 1}))
    assert (await sessions.create_session(**NAME)).state == {"user:u": 1}


async def test_two_runners_on_one_session_lose_nothing_and_see_what_the_other_has_stored(annals: AsyncAnnals) -> None:
    runners = [AnnalsSessionService(annals), AnnalsSessionService(annals)]
    await runners[0].create_session(**NAME)
    seen = [await read(runner) for runner in runners]

    async def append(runner: int) -> None:
        for n in range(10):
            event = said(f"{runner}/{n}", {f"{runner}/{n}": n, "app:last": f"{runner}/{n}"})
            await runners[runner].append_event(seen[runner], event)

    await asyncio.gather(append(0), append(1))
    stored = await read(runners[0])
    assert len(stored.events) == 20
    for runner in range(2):
        own = [f"{runner}/{n}" for n in range(10)]
        assert [text for text in texts_of(stored) if text and text.startswith(f"{runner}/")] == own
        assert [stored.state[name] for name in own] == [*range(10)]
        # What a runner sees is a beginning of the log, without gaps.
        assert texts_of(seen[runner]) == texts_of(stored)[: len(seen[runner].events)]


async def test_an_event_larger_than_a_body_and_one_that_is_no_message_come_back(
    annals: AsyncAnnals, sessions: AnnalsSessionService
) -> None:
    session = await sessions.create_session(**NAME)
    large = "é" * 800_000
    await sessions.append_event(session, said(large, {"big": True}))
    await sessions.append_event(session, Event(author="user", content=types.Content(role="user", parts=[])))
    await sessions.append_event(session, said("after"))
    stored = await read(sessions)
    assert (texts_of(stored), stored.state) == ([large, "after"], {"big": True})
    assert len(stored.events) == 3
    session_id = stable_id("adk-python", *NAME.values())
    messages = [each async for each in annals.sessions.messages(session_id, format="openai")]
    assert messages[-1] == {"role": "user", "content": "after"}


async def test_a_run_loses_and_doubles_nothing_when_the_service_is_killed_in_the_middle(
    service: Service, killable: KillableNode
) -> None:
    async with AsyncAnnals(url=killable.url, token=service.new_project(), timeout_s=90, retries=200) as annals:
        sessions = AnnalsSessionService(annals)
        session = await sessions.create_session(**NAME)
        killed: asyncio.Future[None] | None = None
        for n in range(30):
            if n == 9:
                killed = asyncio.get_running_loop().run_in_executor(None, killable.kill)
            await sessions.append_event(session, said(f"{n}", {"n": n, "user:n": n}))
        assert killed
        await killed
        stored = await read(sessions)
    assert (texts_of(stored), stored.state) == ([f"{n}" for n in range(30)], {"n": 29, "user:n": 29})


async def test_contexts_begin_with_what_a_compaction_says(annals: AsyncAnnals, sessions: AnnalsSessionService) -> None:
    def compaction(text: str, start: float, end: float) -> Event:
        content = types.Content(role="model", parts=[types.Part(text=text)])
        compacted = EventCompaction(start_timestamp=start, end_timestamp=end, compacted_content=content)
        return Event(author="user", invocation_id="run", actions=EventActions(compaction=compacted), timestamp=99)

    async def context() -> list[str]:
        [stored] = (await annals.sessions.list().page())["items"]
        return [str(item["content"]) for item in (await annals.sessions.context(stored["id"]))["items"]]

    session = await sessions.create_session(**NAME)
    for timestamp in (1, 2, 3, 4):
        await sessions.append_event(session, said(f"said {timestamp}", timestamp=timestamp))
    await sessions.append_event(session, compaction("one and two", 1, 2))
    assert await context() == ["one and two", "said 3", "said 4"]
    # The first one goes further back, so both are said.
    await sessions.append_event(session, compaction("two and three", 2, 3))
    first, *rest = await context()
    assert "one and two" in first
    assert "two and three" in first
    assert rest == ["said 4"]
    await sessions.append_event(session, compaction("all", 1, 4))
    assert await context() == ["all"]
    assert len([each for each in (await read(sessions)).events if each.actions.compaction]) == 3


class Scripted(BaseLlm):
    """Calls one tool after the other, and then says what they returned."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        answers = [part.function_response.response for part in parts if part.function_response]
        calls = [("pay", {"eur": 7}), ("ship", {"to": "Ada"})][len(answers) :][:1]
        said = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in calls]
        yield LlmResponse(content=types.Content(role="model", parts=said or [types.Part(text=f"{answers}")]))


def pay(eur: int) -> dict[str, str]:
    """Pays."""
    return {"paid": f"{eur} EUR"}


def ship(to: str) -> None:
    """Asks for a shipment, which a person starts."""


async def test_calls_that_wait_for_a_person_go_on_elsewhere_with_what_was_decided(
    annals: AsyncAnnals, sessions: AnnalsSessionService
) -> None:
    agent = LlmAgent(
        name="till",
        model=Scripted(model="scripted"),
        tools=[FunctionTool(pay, require_confirmation=True), LongRunningFunctionTool(ship)],
    )

    async def run(service: AnnalsSessionService, message: types.Content) -> str:
        runner = Runner(app_name="app", agent=agent, session_service=service)
        said = ""
        async for event in runner.run_async(user_id="alice", session_id="one", new_message=message):
            for part in (event.content.parts or []) if event.content else []:
                said = part.text or said
        return said

    await sessions.create_session(**NAME)
    message = types.Content(role="user", parts=[types.Part(text="Pay and ship.")])
    for call, decision in (
        ({"name": "pay", "arguments": {"eur": 7}}, "approve"),
        ({"name": "ship", "arguments": {"to": "Ada"}}, "deny"),
    ):
        assert await run(sessions, message) == ""
        [request] = await sessions.ask_for_approvals(**NAME)
        assert request.get("call") == call
        # As another process would begin.
        sessions = AnnalsSessionService(annals)
        resuming = asyncio.ensure_future(sessions.resume(**NAME))
        digest = request.get("call_sha256", "")
        await annals.runs.resolve(request["id"], decision=cast(Any, decision), by="ada", call_sha256=digest)
        answer = await resuming
        assert answer
        message = answer
    said = await run(sessions, message)
    assert "7 EUR" in said
    assert "This call was denied by ada." in said
    assert await sessions.resume(**NAME) is None
