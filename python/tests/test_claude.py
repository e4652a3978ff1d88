"""A session store of the Claude Agent SDK."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from claude_agent_sdk import SessionKey, SessionStore, fold_session_summary
from claude_agent_sdk.testing import run_session_store_conformance

from annals import AnnalsError, AsyncAnnals
from annals._storable import stable_id
from annals.claude import AnnalsSessionStore

from .cutting_proxy import CuttingProxy
from .javascript import run_javascript
from .service import KillableNode, Service

pytestmark = pytest.mark.anyio

KEY: SessionKey = {"project_key": "project", "session_id": "session"}
SUBPATH = "subagents/agent-1"
BELOW: SessionKey = {**KEY, "subpath": SUBPATH}
SESSION_ID = stable_id("claude-agent-sdk", "project", "session")


@pytest.fixture
async def annals(service: Service) -> AsyncIterator[AsyncAnnals]:
    """A client of a new project."""
    async with AsyncAnnals(url=service.url, token=service.new_project()) as annals:
        yield annals


def user(content: object, **more: Any) -> Any:
    return {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": content}, **more}


def turn(n: int) -> list[Any]:
    """As Claude Code writes it: lines with a uuid and lines without."""
    call = {"type": "tool_use", "id": f"call_{n}", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"call_{n}", "content": "README.md"}
    message = {"role": "assistant", "content": [call], "usage": {"n": n}}
    return [
        {"type": "mode", "mode": "default"},
        user(f"prompt {n}", timestamp="2026-01-01T00:00:00.000Z", cwd="/home"),
        {"type": "assistant", "uuid": str(uuid.uuid4()), "message": message},
        user([result], toolUseResult={"stdout": "README.md", "stderr": ""}),
        {"type": "custom-title", "customTitle": f"title {n}"},
    ]


async def test_the_14_contracts_hold(service: Service) -> None:
    stores = 0
    async with AsyncExitStack() as stack:

        async def new_store() -> SessionStore:
            nonlocal stores
            stores += 1
            annals = AsyncAnnals(url=service.url, token=service.new_project())
            return AnnalsSessionStore(await stack.enter_async_context(annals))

        await run_session_store_conformance(new_store)
    # One for each contract, and one to see which optional methods there are: none was left out.
    assert stores == 15


async def test_a_transcript_that_is_imported_again_is_not_stored_again(annals: AsyncAnnals) -> None:
    store = AnnalsSessionStore(annals)
    entries = [*turn(1), *turn(2), *turn(3)]
    await store.append(KEY, entries)
    summaries = await store.list_session_summaries("project")
    for again in (store, AnnalsSessionStore(annals)):
        await again.append(KEY, entries)
    assert await store.load(KEY) == entries
    assert await store.list_session_summaries("project") == summaries


async def test_a_transcript_reads_as_messages_and_tool_calls(annals: AsyncAnnals) -> None:
    await AnnalsSessionStore(annals).append(KEY, turn(1))
    messages = [each async for each in annals.sessions.messages(SESSION_ID, format="openai")]
    assert [each["role"] for each in messages] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == "Bash"


async def test_what_postgresql_cannot_hold_large_images_and_odd_messages_come_back(annals: AsyncAnnals) -> None:
    def image(size: int) -> object:
        data = base64.b64encode(b"image" * (size // 5)).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    store = AnnalsSessionStore(annals)
    odd: Any = {"type": "assistant", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": 7}}
    entries: list[Any] = [
        user("nul \0, half \ud83d, \ufdd0", **{"\0key": "\0"}),
        user([image(3 * 1024 * 1024)]),
        user([image(200 * 1024)]),
        user("text", toolUseResult="r" * 100_000),
        {"type": "\0", "adapter_part": 1},
    ]
    for key in (KEY, BELOW):
        await store.append(key, entries)
        await store.append(key, [odd, user("beside an odd one")])
        loaded = await store.load(key)
        assert loaded
        assert loaded[-2] == odd
        assert [one == other for one, other in zip(loaded, entries, strict=False)] == [True] * len(entries)


async def contents_of(annals: AsyncAnnals, **how: Any) -> list[object]:
    context = await annals.sessions.context(SESSION_ID, format="openai", **how)
    return [item["content"] for item in context["items"]]


async def test_a_context_begins_with_the_summary_of_claude_code_and_what_it_kept(annals: AsyncAnnals) -> None:
    kept, *old = [user("and this?"), *turn(1), *turn(2)]
    boundary: Any = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": str(uuid.uuid4()),
        "compactMetadata": {"trigger": "auto", "preservedMessages": {"uuids": [kept["uuid"]]}},
    }
    entries = [*old, kept, boundary, user("They listed files.", isCompactSummary=True), user("Go on.")]
    store = AnnalsSessionStore(annals)
    await store.append(KEY, entries)
    for again in (store, AnnalsSessionStore(annals)):
        await again.append(KEY, entries)
    assert await store.load(KEY) == entries
    assert await contents_of(annals) == ["They listed files.", "and this?", "Go on."]
    assert len(await contents_of(annals, compaction="none")) == 9
    log = [item async for item in annals.sessions.timeline(SESSION_ID)]
    assert [item["kind"] == "event" and item["type"] == "annals.compaction" for item in log].count(True) == 1


async def test_a_context_has_nothing_of_a_sub_agent_whose_lines_are_among_its_own(annals: AsyncAnnals) -> None:
    told = user("You are to look.", isSidechain=True)
    entries = [user("look"), told, user("and then?")]
    store = AnnalsSessionStore(annals)
    await store.append(KEY, entries)
    assert await store.load(KEY) == entries
    assert await contents_of(annals) == ["look", "and then?"]
    await store.append(BELOW, [told])
    below_id = stable_id("claude-agent-sdk", "project", "session", SUBPATH)
    below = await annals.sessions.context(below_id, format="openai")
    assert [item["content"] for item in below["items"]] == ["You are to look."]


async def test_a_context_has_nothing_that_the_command_wrote_in_place_of_the_model(annals: AsyncAnnals) -> None:
    failed: Any = user("Limit reached", type="assistant", isApiErrorMessage=True)
    failed["message"]["role"] = "assistant"
    entries = [user("look"), failed, user("go on")]
    store = AnnalsSessionStore(annals)
    await store.append(KEY, entries)
    assert await store.load(KEY) == entries
    assert await contents_of(annals) == ["look", "go on"]


async def test_a_context_follows_the_tree_so_what_was_rewound_is_in_none(annals: AsyncAnnals) -> None:
    def after(parent: Any, message: object, kind: str = "user") -> Any:
        parent_uuid = parent and parent["uuid"]
        return {"type": kind, "uuid": str(uuid.uuid4()), "parentUuid": parent_uuid, "message": message}

    def said(content: object) -> object:
        return {"role": "user", "content": content}

    def answer(parent: Any, name: str, content: object) -> Any:
        return after(parent, {"id": name, "role": "assistant", "content": content}, "assistant")

    def use(name: str) -> object:
        return {"type": "tool_use", "id": name, "name": "Read", "input": {}}

    def result(name: str) -> object:
        return said([{"type": "tool_result", "tool_use_id": name, "content": name}])

    store = AnnalsSessionStore(annals)
    first = after(None, said("look"))
    one = answer(first, "m1", [use("a")])
    other = answer(one, "m1", [use("b")])
    results = [after(one, result("a")), after(other, result("b"))]
    done = answer(results[1], "m2", "done")
    wrong = after(done, said("delete it"))
    deleted = answer(wrong, "m3", "deleted")
    await store.append(KEY, [first, one, other, *results, done])
    await store.append(KEY, [wrong, deleted])
    begun = ["look", None, "a", "b", "done"]
    assert await contents_of(annals) == [*begun, "delete it", "deleted"]
    right = after(done, said("keep it"))
    await AnnalsSessionStore(annals).append(KEY, [right, answer(right, "m4", "kept")])
    assert await contents_of(annals) == [*begun, "keep it", "kept"]
    await store.append(KEY, [after(deleted, said("undo"))])
    assert await contents_of(annals) == [*begun, "delete it", "deleted", "undo"]
    await store.append(KEY, [after(None, said("anew"))])
    assert await contents_of(annals) == ["anew"]
    assert len(await store.load(KEY) or []) == 12


async def test_the_summary_is_right_after_eight_processes_append_at_once(annals: AsyncAnnals) -> None:
    stores = [AnnalsSessionStore(annals) for _ in range(8)]
    await asyncio.gather(*(store.append(KEY, turn(n)) for n, store in enumerate(stores)))
    loaded = await stores[0].load(KEY)
    assert loaded
    assert len(loaded) == 40
    [summary] = await stores[0].list_session_summaries("project")
    assert summary["data"] == fold_session_summary(None, KEY, loaded)["data"]


async def test_a_batch_whose_answer_was_lost_is_stored_once_when_it_is_sent_again(service: Service) -> None:
    untitled: list[Any] = [{"type": "mode", "mode": "plan"}]
    proxy = CuttingProxy(service.url)
    async with AsyncAnnals(url=proxy.url, token=service.new_project(), retries=0) as annals:
        store = AnnalsSessionStore(annals)
        for key in (KEY, BELOW):
            for batch in (turn(1), untitled):
                await store.append(key, turn(2))
                proxy.cut("lose_answer")
                with pytest.raises(AnnalsError):
                    await store.append(key, batch)
                await store.append(key, batch)
            await store.append(key, untitled)
            loaded = await store.load(key)
            assert loaded
            assert len(loaded) == 17
            assert [entry.get("mode") for entry in loaded].count("plan") == 2
    proxy.close()


async def test_a_transcript_and_its_summary_are_those_of_the_sdk_for_javascript(service: Service) -> None:
    program = """
        import { Annals } from '@annals/client'
        import { AnnalsSessionStore } from '@annals/claude-agent-sdk'
        import { foldSessionSummary } from '@anthropic-ai/claude-agent-sdk'

        const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
        const store = new AnnalsSessionStore(annals)
        const key = { projectKey: 'project', sessionId: 'session' }
        await store.append(key, [{ type: 'custom-title', customTitle: 'from JavaScript' }])
        const entries = await store.load(key)
        const [{ data }] = await store.listSessionSummaries('project')
        console.log(JSON.stringify({ entries, data, right: foldSessionSummary(undefined, key, entries).data }))
    """
    token = service.new_project()
    entries = turn(1)
    async with AsyncAnnals(url=service.url, token=token) as annals:
        store = AnnalsSessionStore(annals)
        await store.append(KEY, entries)
        read = await asyncio.to_thread(run_javascript, program, ANNALS_URL=service.url, ANNALS_API_KEY=token)
        assert read["entries"][:-1] == entries
        assert read["data"] == read["right"]
        await store.append(KEY, turn(2)[:-1])
        [summary] = await store.list_session_summaries("project")
        assert summary["data"] == fold_session_summary(None, KEY, await store.load(KEY) or [])["data"]
        assert summary["data"]["custom_title"] == "from JavaScript"


async def test_a_long_transcript_loses_and_doubles_nothing_when_the_service_is_killed_in_the_middle(
    service: Service, killable: KillableNode
) -> None:
    token = service.new_project()
    async with AsyncAnnals(url=killable.url, token=token, timeout_s=90, retries=200) as annals:
        store = AnnalsSessionStore(annals)
        turns = [turn(n) for n in range(30)]
        appends = [asyncio.create_task(store.append(KEY, batch)) for batch in turns]
        await appends[9]
        killed = asyncio.get_running_loop().run_in_executor(None, killable.kill)
        await asyncio.gather(killed, *appends)
        assert await store.load(KEY) == [entry for each in turns for entry in each]


@pytest.mark.parametrize("length", [70_500, 1_200_000])
async def test_a_large_result_stays_a_message_that_answers_its_call(annals: AsyncAnnals, length: int) -> None:
    store = AnnalsSessionStore(annals)
    content = "line of a file\n" * (length // 15)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file": "big.txt"}}
    entries: list[Any] = [
        user("Read big.txt"),
        {"type": "assistant", "uuid": str(uuid.uuid4()), "message": {"role": "assistant", "content": [call]}},
        user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}], toolUseResult={"file": content}),
        user("Thanks"),
    ]
    await store.append(KEY, entries)
    loaded = await store.load(KEY)
    is_same = loaded == entries
    assert is_same
    context = await annals.sessions.context(SESSION_ID, format="openai", max_tokens=1_000_000)
    roles = [(item["role"], item.get("tool_call_id")) for item in context["items"]]
    assert roles == [("user", None), ("assistant", None), ("tool", "toolu_1"), ("user", None)]
    read: str = context["items"][2]["content"]
    is_same = read == content
    assert is_same
