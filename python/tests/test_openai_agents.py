"""A session of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
from agents import Agent, RunConfig, Runner, Session, SessionSettings, TResponseInputItem, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from annals import AnnalsError, AsyncAnnals
from annals.openai_agents import AnnalsSession

from .javascript import run_javascript
from .service import KillableNode, Service, new_name

pytestmark = pytest.mark.anyio

MANY = 10_000 if os.environ.get("TEST_THOROUGH") == "1" else 2_000


@pytest.fixture
async def annals(service: Service) -> AsyncIterator[AsyncAnnals]:
    async with AsyncAnnals(url=service.url, token=service.token) as annals:
        yield annals


def said(content: object) -> TResponseInputItem:
    return cast(TResponseInputItem, {"role": "user", "content": content})


def numbers(first: int, last: int) -> list[TResponseInputItem]:
    return [said(f"{n}") for n in range(first, last + 1)]


def content_of(item: TResponseInputItem | None) -> Any:
    assert item
    return item.get("content")


async def test_a_session_is_made_of_its_id_and_can_be_cleared(service: Service, annals: AsyncAnnals) -> None:
    name = new_name("customer")
    session = AnnalsSession(name, annals)
    assert isinstance(session, Session)
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.clear_session()
    await session.add_items([])
    await session.add_items(numbers(1, 3))
    async with AsyncAnnals(url=service.url, token=service.token) as other:
        again = AnnalsSession(name, other)
        assert await again.get_items() == numbers(1, 3)
        assert await again.get_items(2) == numbers(2, 3)
        assert await again.get_items(0) == []
        limited = AnnalsSession(name, other, session_settings=SessionSettings(limit=1))
        assert await limited.get_items() == numbers(3, 3)
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items([said("again")])
    assert await session.get_items() == [said("again")]


async def test_twenty_that_pop_at_once_at_two_nodes_get_twenty_items(
    service: Service, annals: AsyncAnnals, killable: KillableNode
) -> None:
    session = AnnalsSession(new_name(), annals)
    await session.add_items(numbers(1, 20))
    async with AsyncAnnals(url=killable.url, token=service.token) as other:
        elsewhere = AnnalsSession(session.session_id, other)
        popped = await asyncio.gather(*(each.pop_item() for each in [session, elsewhere] * 10))
    assert sorted(int(content_of(item)) for item in popped) == [*range(1, 21)]
    assert await session.pop_item() is None


async def test_the_newest_twenty_of_many_are_one_request_also_after_half_were_popped(service: Service) -> None:
    sent: list[str] = []

    async def note(request: httpx.Request) -> None:
        sent.append(request.url.path.split("/")[-1])

    async with httpx.AsyncClient(event_hooks={"request": [note]}) as http:
        annals = AsyncAnnals(url=service.url, token=service.token, http_client=http)
        session = AnnalsSession(new_name(), annals)
        await session.add_items(numbers(1, MANY))
        for newest in (MANY, MANY // 2):
            sent.clear()
            assert await session.get_items(20) == numbers(newest - 19, newest)
            assert sent == ["messages"]
            if newest == MANY:
                for _ in range(MANY // 2 // 1_000):
                    await annals.sessions.retract(session.id, last=1_000, kind="message")
        assert await session.get_items() == numbers(1, MANY // 2)


async def test_items_come_back_as_they_were_whatever_they_are(annals: AsyncAnnals) -> None:
    session = AnnalsSession(new_name(), annals)
    items: list[Any] = [
        said("nul \0, half \ud83d, \ufdd0"),
        {"type": "function_call", "call_id": "1", "name": "book", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},
        {"type": "something_new", "value": 7},
        {"type": "openai_agents.item", "item": 7},
    ]
    odd: list[Any] = [{"role": "user", "content": 7}, said("beside an odd one"), {"nothing": True}]
    for each in (items, odd, [said("s" * 600_000)] * 3):
        await session.add_items(cast(list[TResponseInputItem], each))
    assert await session.get_items() == [*items, *odd, *[said("s" * 600_000)] * 3]
    assert await session.get_items(5) == [*odd[1:], *[said("s" * 600_000)] * 3]


async def test_a_run_that_waits_for_approvals_goes_on_in_another_process_with_what_was_decided(
    service: Service,
) -> None:
    booked: list[str] = []

    @function_tool(needs_approval=True)
    def book(seat: str) -> str:
        booked.append(seat)
        return f"booked {seat}"

    def new_agent(*steps: Any) -> Agent:
        return Agent(name="Booker", model=ScriptedModel([*steps]), tools=[book])

    name = new_name("booking")
    config = RunConfig(tracing_disabled=True)
    async with AsyncAnnals(url=service.url, token=service.token) as annals:
        session = AnnalsSession(name, annals)
        calls = [function_call("book", {"seat": seat}, call_id=f"call_{seat}") for seat in ("14C", "1A")]
        waiting = await Runner.run(new_agent(calls), "Book 14C and 1A", session=session, run_config=config)
        asked = await session.checkpoint(waiting)
    # As other processes would begin. The first one is killed after it has run, and before its checkpoint.
    async with AsyncAnnals(url=service.url, token=service.token) as annals:
        assert [(each.get("call"), each.get("text")) for each in asked] == [
            ({"name": "book", "arguments": {"seat": seat}}, f"Call call_{seat} of Booker") for seat in ("14C", "1A")
        ]
        resuming = asyncio.ensure_future(AnnalsSession(name, annals).resume(new_agent()))
        for each, decision in zip(asked, ("approve", "deny"), strict=True):
            await annals.runs.resolve(
                each["id"], decision=cast(Any, decision), by="ada", call_sha256=each.get("call_sha256", "")
            )
        assert await resuming
        for output in ("killed", "Seat 14C is yours."):
            session = AnnalsSession(name, annals)
            agent = new_agent([assistant_message(output)])
            state = await session.resume(agent)
            assert state
            done = await Runner.run(agent, state, session=session, run_config=config)
        await session.checkpoint(done)
        assert await session.resume(agent) is None
        items = cast(list[dict[str, Any]], await session.get_items())
        assert [item.get("type", item.get("role")) for item in items] == [
            "user",
            *["function_call"] * 2,
            *["function_call_output"] * 2,
            "message",
        ]
        assert [item["output"] for item in items[3:5]] == ["booked 14C", "This call was denied by ada."]
        assert [request async for request in annals.runs.requests(session_id=session.id)] == []
    assert set(booked) == {"14C"}


async def test_a_session_writes_under_its_lease_and_nothing_once_another_runner_has_it(annals: AsyncAnnals) -> None:
    session = AnnalsSession(new_name(), annals)
    async with session.with_lease(owner="a"):
        await session.add_items(numbers(1, 1))
        await annals.runs.take_lease(session.id, owner="a", ttl_ms=60_000)
        with pytest.raises(AnnalsError, match="fence"):
            await session.add_items(numbers(2, 2))
    assert await session.get_items() == numbers(1, 1)


async def test_a_conversation_goes_on_in_the_sdk_for_javascript(service: Service, annals: AsyncAnnals) -> None:
    program = """
        import { Annals } from '@annals/client'
        import { AnnalsSession } from '@annals/openai-agents'

        const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
        const session = new AnnalsSession({ annals, sessionId: process.env.SESSION })
        console.log(JSON.stringify(await session.getItems()))
        const output = { type: 'text', text: 'booked' }
        const result = { type: 'function_call_result', callId: '1', name: 'book', status: 'completed', output }
        await session.addItems([result, { type: 'message', role: 'user', content: 'Thanks' }])
    """
    session = AnnalsSession(new_name(), annals)
    call = {"type": "function_call", "call_id": "1", "name": "book", "arguments": "{}"}
    await session.add_items([said("Book 14C"), cast(TResponseInputItem, call)])
    environment = {"ANNALS_URL": service.url, "ANNALS_API_KEY": service.token, "SESSION": session.session_id}
    read = await asyncio.to_thread(run_javascript, program, **environment)
    assert read == [said("Book 14C"), {"type": "function_call", "callId": "1", "name": "book", "arguments": "{}"}]
    result = {"type": "function_call_output", "call_id": "1", "output": "booked", "status": "completed", "name": "book"}
    thanks = {"type": "message", "role": "user", "content": "Thanks"}
    assert (await session.get_items())[2:] == [result, thanks]
    compact = """
        import { Annals } from '@annals/client'
        import { AnnalsSession } from '@annals/openai-agents'

        const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
        const session = new AnnalsSession({ annals, sessionId: process.env.SESSION })
        const [thanks] = await session.getItems(1)
        await session.replaceHistoryWithCompaction([{ type: 'compaction', encrypted_content: 'abc' }, thanks])
        console.log(JSON.stringify(await session.getItems()))
    """
    assert len(await asyncio.to_thread(run_javascript, compact, **environment)) == 2
    assert await session.get_items() == [{"type": "compaction", "encrypted_content": "abc"}, thanks]
    assert await session.get_items(1) == [thanks]


async def test_a_conversation_loses_and_doubles_nothing_when_the_service_is_killed_in_the_middle(
    service: Service, killable: KillableNode
) -> None:
    async with AsyncAnnals(url=killable.url, token=service.token, timeout_s=90, retries=200) as annals:
        session = AnnalsSession(new_name(), annals)
        turns = [[said(f"{n}"), said(f"{n}, too")] for n in range(30)]
        await session.add_items(turns[0])
        killed = asyncio.get_running_loop().run_in_executor(None, killable.kill)
        for turn in turns[1:]:
            await session.add_items([*turn, said("popped")])
            assert await session.pop_item() == said("popped")
        await killed
        assert await session.get_items() == [item for turn in turns for item in turn]


async def test_items_larger_than_a_request_come_back_and_stay_messages(annals: AsyncAnnals) -> None:
    session = AnnalsSession(new_name("large"), annals)
    image = f"data:image/png;base64,{base64.b64encode(bytes(1_500_000)).decode()}"
    call = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "é" * 1_200_000}
    items = [said([{"type": "input_image", "image_url": image}]), cast(TResponseInputItem, call)]
    items.append(cast(TResponseInputItem, output))
    await session.add_items(items)
    is_same = await session.get_items() == items
    assert is_same
    context = await annals.sessions.context(session.id, format="openai", max_tokens=1_000_000)
    assert [item["role"] for item in context["items"]] == ["user", "assistant", "tool"]
    is_popped = await session.pop_item() == output
    assert is_popped
