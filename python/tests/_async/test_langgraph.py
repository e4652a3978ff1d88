"""A graph whose threads are kept in Annals."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import httpx
import pytest
from langgraph.channels.delta import DeltaChannel  # pyright: ignore[reportMissingTypeStubs]
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Command, interrupt

from annals import AsyncAnnals
from annals._waiting import async_sleep
from annals.langgraph import AsyncAnnalsSaver
from annals.types import TimelineItem

from ..concurrency import async_together
from ..service import KillableNode, Service, new_name

pytestmark = pytest.mark.anyio

METADATA: CheckpointMetadata = {"source": "loop", "step": 0, "parents": {}}


class State(TypedDict, total=False):
    n: int
    seen: Annotated[list[int], operator.add]
    deltas: Annotated[list[int], DeltaChannel(lambda all_, more: [*all_, *(n for each in more for n in each)])]
    book: str


def counter(saver: AsyncAnnalsSaver, steps: int, on_step: Callable[[int], object] = lambda n: None) -> Any:
    """A graph that counts to `steps`, one a step, beside a value that it never changes."""

    def count(state: State) -> State:
        n = state.get("n", 0)
        on_step(n)
        return {"n": n + 1, "seen": [n], "deltas": [n]}

    def go_on(state: State) -> str:
        return "count" if state.get("n", 0) < steps else END

    graph = StateGraph[Any](State)
    graph.add_node("count", count)  # pyright: ignore[reportUnknownMemberType]
    graph.add_edge(START, "count")
    graph.add_conditional_edges("count", go_on)
    return graph.compile(checkpointer=saver)  # pyright: ignore[reportUnknownMemberType]


def config_of(thread_id: str, **more: object) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}, **more}


def checkpoint(n: int, values: dict[str, Any], versions: dict[str, Any]) -> Checkpoint:
    return {**empty_checkpoint(), "id": str(uuid6(clock_seq=n)), "channel_values": values, "channel_versions": versions}


@pytest.fixture
async def saver(annals: AsyncAnnals) -> AsyncAnnalsSaver:
    return AsyncAnnalsSaver(annals)


async def entries_of(annals: AsyncAnnals, thread_id: str) -> list[TimelineItem]:
    sessions = await annals.sessions.list(filter_by_configs={"langgraph": {"thread_id": thread_id}}).page()
    return [item async for item in annals.sessions.timeline(sessions["items"][0]["id"], limit=1000)]


async def test_a_graph_waits_for_a_person_resumes_in_another_process_and_forks(annals: AsyncAnnals) -> None:
    class Refund(TypedDict, total=False):
        order: str
        answer: str

    def new_graph() -> Any:
        """As another process would make it."""
        graph = StateGraph[Any](Refund)
        graph.add_node("look_up", lambda _: {"order": "A-17, $40"})  # pyright: ignore
        graph.add_node("approve", lambda state: {"answer": interrupt(f"Refund {state['order']}?")})  # pyright: ignore
        graph.add_edge(START, "look_up")
        graph.add_edge("look_up", "approve")
        return graph.compile(checkpointer=AsyncAnnalsSaver(annals))  # pyright: ignore[reportUnknownMemberType]

    config = config_of(new_name("refund"))
    await new_graph().ainvoke({}, config)
    waiting = await new_graph().aget_state(config)
    assert waiting.tasks[0].interrupts[0].value == "Refund A-17, $40?"
    done = await new_graph().ainvoke(Command(resume="yes"), config)
    assert done["answer"] == "yes"
    past = [each async for each in new_graph().aget_state_history(config) if each.next == ("approve",)]
    fork = await new_graph().aupdate_state(past[-1].config, {"order": "A-17, $25"})
    forked = await new_graph().ainvoke(None, fork)
    assert forked["__interrupt__"][0].value == "Refund A-17, $25?"
    before = await new_graph().aget_state(past[-1].config)
    assert before.values["order"] == "A-17, $40"


async def test_the_newest_of_many_checkpoints_takes_three_requests_in_whatever_order_they_were_stored(
    service: Service,
) -> None:
    sent: list[str] = []

    async def count(request: httpx.Request) -> None:
        sent.append(request.url.path)

    async with httpx.AsyncClient(event_hooks={"request": [count]}) as http:
        annals = AsyncAnnals(url=service.url, token=service.token, http_client=http)
        saver = AsyncAnnalsSaver(annals)
        config = config_of(new_name("long"))
        every = [checkpoint(n, {"n": n}, {"n": n + 1.5}) for n in range(200)]
        for each in sorted(every, key=lambda each: each["id"][::-1]):
            await saver.aput(config, each, METADATA, each["channel_versions"])
        newest = max(each["id"] for each in every)
        sent.clear()
        found = await saver.aget_tuple(config)
        assert found
        assert found.checkpoint["id"] == newest
        assert found.checkpoint["channel_values"] == {"n": next(n for n in range(200) if every[n]["id"] == newest)}
        assert len(sent) <= 3
        listed = [each.checkpoint["id"] async for each in saver.alist(config, limit=3)]
        assert listed == sorted((each["id"] for each in every), reverse=True)[:3]


async def test_a_thread_reads_in_the_order_in_which_it_happened(service: Service) -> None:
    sent: list[str] = []

    async def dawdle(request: httpx.Request) -> None:
        sent.append(request.url.path)
        await async_sleep(0.03 * (len(sent) % 2))

    config = config_of(new_name("order"), recursion_limit=100)
    async with httpx.AsyncClient(event_hooks={"request": [dawdle]}) as http:
        annals = AsyncAnnals(url=service.url, token=service.token, http_client=http)
        await counter(AsyncAnnalsSaver(annals), 12).ainvoke({"n": 0, "book": ""}, config)
        entries = await entries_of(annals, config["configurable"]["thread_id"])
    data = [entry["data"] for entry in entries if entry["kind"] == "event" and entry["type"] == "langgraph.write"]
    assert [each["value"]["json"] for each in data if each["channel"] == "n"] == [*range(13)]


async def test_steps_beside_a_large_value_store_it_once(annals: AsyncAnnals, saver: AsyncAnnalsSaver) -> None:
    config = config_of(new_name("steps"), recursion_limit=100)
    done = await counter(saver, 20).ainvoke({"n": 0, "book": "b" * 100_000}, config)
    assert done["n"] == 20
    entries = await entries_of(annals, config["configurable"]["thread_id"])
    # As the input, as the write of the input's step, and as what the channel holds from then on.
    assert sum("bbbbbbbb" in str(entry) for entry in entries) == 3


async def test_two_branches_that_count_on_from_one_version_keep_their_own_values(saver: AsyncAnnalsSaver) -> None:
    config = config_of(new_name("branches"))
    graph = counter(saver, 3)
    await graph.ainvoke({"n": 0, "book": "first"}, config)
    history = [each async for each in graph.aget_state_history(config)]
    start = next(each for each in history if each.values["n"] == 1)
    fork = await graph.aupdate_state(start.config, {"n": 2, "book": "second"})
    forked = await graph.ainvoke(None, fork)
    assert (forked["book"], forked["seen"], forked["deltas"]) == ("second", [0, 2], [0, 2])
    before = await graph.aget_state(history[0].config)
    assert (before.values["book"], before.values["seen"], before.values["deltas"]) == ("first", [0, 1, 2], [0, 1, 2])


async def test_text_that_postgresql_cannot_hold_and_values_larger_than_a_body_come_back(
    annals: AsyncAnnals, saver: AsyncAnnalsSaver
) -> None:
    config = config_of(f"\0\ud800{new_name()}")
    values = {
        "text": "nul \0, half \ud83d, \ufdd0",
        "bytes": b"\0\xff",
        "set": {2},
        "large": 'é\n"' * 250_000,
        "constructor": {"lc": 2, "type": "constructor"},
        "none": None,
    }
    versions = dict.fromkeys(values, 1)
    stored = await saver.aput(config, checkpoint(1, values, versions), METADATA, {**versions})
    await saver.aput_writes(stored, [("large", values["large"])], "task")
    found = await saver.aget_tuple(config)
    assert found
    assert found.pending_writes == [("task", "large", values["large"])]
    constructor = found.checkpoint["channel_values"].pop("constructor")
    assert constructor == saver.serde.loads_typed(saver.serde.dumps_typed(values.pop("constructor")))
    assert found.checkpoint["channel_values"] == values
    listed = [each.config async for each in saver.alist(None) if each.checkpoint["id"] == found.checkpoint["id"]]
    assert listed == [found.config]


async def test_the_first_of_a_tasks_writes_with_an_index_stays_and_the_last_of_its_errors(
    saver: AsyncAnnalsSaver,
) -> None:
    config = await saver.aput(config_of(new_name("writes")), checkpoint(1, {}, {}), METADATA, {})
    await saver.aput_writes(config, [("a", 1)], "task")
    await saver.aput_writes(config, [("a", 2), ("b", 3)], "task")
    for error in ("x", "y", "x"):
        await saver.aput_writes(config, [("__error__", error)], "task")
    found = await saver.aget_tuple(config)
    assert found
    assert found.pending_writes == [("task", "__error__", "x"), ("task", "a", 1), ("task", "b", 3)]


async def test_pruning_keeps_what_a_delta_channel_is_made_of(saver: AsyncAnnalsSaver) -> None:
    thread_id = new_name("pruned")
    config = config_of(thread_id)
    await counter(saver, 4).ainvoke({"n": 0, "book": "b"}, config)
    await saver.aprune([thread_id])
    again = await counter(saver, 6).ainvoke({"n": 4}, config)
    assert again["deltas"] == [0, 1, 2, 3, 4, 5]


async def test_copies_at_once_and_once_more_make_one_thread(saver: AsyncAnnalsSaver) -> None:
    thread_id, copy_id = new_name("original"), new_name("copy")
    await counter(saver, 3).ainvoke({"n": 0, "book": "b" * 1_200_000}, config_of(thread_id))
    await async_together(*[lambda: saver.acopy_thread(thread_id, copy_id)] * 2)
    await saver.acopy_thread(thread_id, copy_id)
    copied = [each async for each in counter(saver, 3).aget_state_history(config_of(copy_id))]
    original = [each async for each in counter(saver, 3).aget_state_history(config_of(thread_id))]
    assert [each.values for each in copied] == [each.values for each in original]
    assert copied[0].values["seen"] == [0, 1, 2]
    assert (await counter(saver, 5).ainvoke({"n": 3}, config_of(copy_id)))["deltas"] == [0, 1, 2, 3, 4]


async def test_a_deleted_thread_can_be_stored_again(saver: AsyncAnnalsSaver) -> None:
    config = config_of(new_name("again"))
    one = checkpoint(1, {"a": 1}, {"a": 1})
    for _ in range(2):
        await saver.aput(config, one, METADATA, {"a": 1})
        found = await saver.aget_tuple(config)
        assert found
        assert found.checkpoint["channel_values"] == {"a": 1}
        await saver.adelete_thread(config["configurable"]["thread_id"])
        assert await saver.aget_tuple(config) is None


async def test_a_run_loses_and_doubles_nothing_when_the_service_is_killed_in_the_middle(
    service: Service, killable: KillableNode
) -> None:
    config = config_of(new_name("killed"), recursion_limit=100)
    async with AsyncAnnals(url=killable.url, token=service.token, timeout_s=90, retries=200) as annals:
        graph = counter(AsyncAnnalsSaver(annals), 20, lambda n: killable.kill() if n == 8 else None)
        done = await graph.ainvoke({"n": 0, "book": "b"}, config)
        assert done["seen"] == done["deltas"] == [*range(20)]
        history = [each.values.get("n") async for each in graph.aget_state_history(config)]
        assert history == [*range(20, -1, -1), None]
        keys = [entry.get("key", "") for entry in await entries_of(annals, config["configurable"]["thread_id"])]
    checkpoints = [key for key in keys if key.startswith("checkpoint/")]
    assert len(checkpoints) == len({*checkpoints}) == 22
