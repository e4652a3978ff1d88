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

from annals import Annals
from annals._waiting import sleep
from annals.langgraph import AnnalsSaver
from annals.types import TimelineItem

from ..concurrency import together
from ..service import KillableNode, Service, new_name

pytestmark = pytest.mark.anyio

METADATA: CheckpointMetadata = {"source": "loop", "step": 0, "parents": {}}


class State(TypedDict, total=False):
    n: int
    seen: Annotated[list[int], operator.add]
    deltas: Annotated[list[int], DeltaChannel(lambda all_, more: [*all_, *(n for each in more for n in each)])]
    book: str


def counter(saver: AnnalsSaver, steps: int, on_step: Callable[[int], object] = lambda n: None) -> Any:
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
def saver(annals: Annals) -> AnnalsSaver:
    return AnnalsSaver(annals)


def entries_of(annals: Annals, thread_id: str) -> list[TimelineItem]:
    sessions = annals.sessions.list(filter_by_configs={"langgraph": {"thread_id": thread_id}}).page()
    return [item for item in annals.sessions.timeline(sessions["items"][0]["id"], limit=1000)]


def test_a_graph_waits_for_a_person_resumes_in_another_process_and_forks(annals: Annals) -> None:
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
        return graph.compile(checkpointer=AnnalsSaver(annals))  # pyright: ignore[reportUnknownMemberType]

    config = config_of(new_name("refund"))
    new_graph().invoke({}, config)
    waiting = new_graph().get_state(config)
    assert waiting.tasks[0].interrupts[0].value == "Refund A-17, $40?"
    done = new_graph().invoke(Command(resume="yes"), config)
    assert done["answer"] == "yes"
    past = [each for each in new_graph().get_state_history(config) if each.next == ("approve",)]
    fork = new_graph().update_state(past[-1].config, {"order": "A-17, $25"})
    forked = new_graph().invoke(None, fork)
    assert forked["__interrupt__"][0].value == "Refund A-17, $25?"
    before = new_graph().get_state(past[-1].config)
    assert before.values["order"] == "A-17, $40"


def test_the_newest_of_many_checkpoints_takes_three_requests_in_whatever_order_they_were_stored(
    service: Service,
) -> None:
    sent: list[str] = []

    def count(request: httpx.Request) -> None:
        sent.append(request.url.path)

    with httpx.Client(event_hooks={"request": [count]}) as http:
        annals = Annals(url=service.url, token=service.token, http_client=http)
        saver = AnnalsSaver(annals)
        config = config_of(new_name("long"))
        every = [checkpoint(n, {"n": n}, {"n": n + 1.5}) for n in range(200)]
        for each in sorted(every, key=lambda each: each["id"][::-1]):
            saver.put(config, each, METADATA, each["channel_versions"])
        newest = max(each["id"] for each in every)
        sent.clear()
        found = saver.get_tuple(config)
        assert found
        assert found.checkpoint["id"] == newest
        assert found.checkpoint["channel_values"] == {"n": next(n for n in range(200) if every[n]["id"] == newest)}
        assert len(sent) <= 3
        listed = [each.checkpoint["id"] for each in saver.list(config, limit=3)]
        assert listed == sorted((each["id"] for each in every), reverse=True)[:3]


def test_a_thread_reads_in_the_order_in_which_it_happened(service: Service) -> None:
    sent: list[str] = []

    def dawdle(request: httpx.Request) -> None:
        sent.append(request.url.path)
        sleep(0.03 * (len(sent) % 2))

    config = config_of(new_name("order"), recursion_limit=100)
    with httpx.Client(event_hooks={"request": [dawdle]}) as http:
        annals = Annals(url=service.url, token=service.token, http_client=http)
        counter(AnnalsSaver(annals), 12).invoke({"n": 0, "book": ""}, config)
        entries = entries_of(annals, config["configurable"]["thread_id"])
    data = [entry["data"] for entry in entries if entry["kind"] == "event" and entry["type"] == "langgraph.write"]
    assert [each["value"]["json"] for each in data if each["channel"] == "n"] == [*range(13)]


def test_steps_beside_a_large_value_store_it_once(annals: Annals, saver: AnnalsSaver) -> None:
    config = config_of(new_name("steps"), recursion_limit=100)
    done = counter(saver, 20).invoke({"n": 0, "book": "b" * 100_000}, config)
    assert done["n"] == 20
    entries = entries_of(annals, config["configurable"]["thread_id"])
    # As the input, as the write of the input's step, and as what the channel holds from then on.
    assert sum("bbbbbbbb" in str(entry) for entry in entries) == 3


def test_two_branches_that_count_on_from_one_version_keep_their_own_values(saver: AnnalsSaver) -> None:
    config = config_of(new_name("branches"))
    graph = counter(saver, 3)
    graph.invoke({"n": 0, "book": "first"}, config)
    history = [each for each in graph.get_state_history(config)]
    start = next(each for each in history if each.values["n"] == 1)
    fork = graph.update_state(start.config, {"n": 2, "book": "second"})
    forked = graph.invoke(None, fork)
    assert (forked["book"], forked["seen"], forked["deltas"]) == ("second", [0, 2], [0, 2])
    before = graph.get_state(history[0].config)
    assert (before.values["book"], before.values["seen"], before.values["deltas"]) == ("first", [0, 1, 2], [0, 1, 2])


def test_text_that_postgresql_cannot_hold_and_values_larger_than_a_body_come_back(
    annals: Annals, saver: AnnalsSaver
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
    stored = saver.put(config, checkpoint(1, values, versions), METADATA, {**versions})
    saver.put_writes(stored, [("large", values["large"])], "task")
    found = saver.get_tuple(config)
    assert found
    assert found.pending_writes == [("task", "large", values["large"])]
    constructor = found.checkpoint["channel_values"].pop("constructor")
    assert constructor == saver.serde.loads_typed(saver.serde.dumps_typed(values.pop("constructor")))
    assert found.checkpoint["channel_values"] == values
    listed = [each.config for each in saver.list(None) if each.checkpoint["id"] == found.checkpoint["id"]]
    assert listed == [found.config]


def test_the_first_of_a_tasks_writes_with_an_index_stays_and_the_last_of_its_errors(
    saver: AnnalsSaver,
) -> None:
    config = saver.put(config_of(new_name("writes")), checkpoint(1, {}, {}), METADATA, {})
    saver.put_writes(config, [("a", 1)], "task")
    saver.put_writes(config, [("a", 2), ("b", 3)], "task")
    for error in ("x", "y", "x"):
        saver.put_writes(config, [("__error__", error)], "task")
    found = saver.get_tuple(config)
    assert found
    assert found.pending_writes == [("task", "__error__", "x"), ("task", "a", 1), ("task", "b", 3)]


def test_pruning_keeps_what_a_delta_channel_is_made_of(saver: AnnalsSaver) -> None:
    thread_id = new_name("pruned")
    config = config_of(thread_id)
    counter(saver, 4).invoke({"n": 0, "book": "b"}, config)
    saver.prune([thread_id])
    again = counter(saver, 6).invoke({"n": 4}, config)
    assert again["deltas"] == [0, 1, 2, 3, 4, 5]


def test_copies_at_once_and_once_more_make_one_thread(saver: AnnalsSaver) -> None:
    thread_id, copy_id = new_name("original"), new_name("copy")
    counter(saver, 3).invoke({"n": 0, "book": "b" * 1_200_000}, config_of(thread_id))
    together(*[lambda: saver.copy_thread(thread_id, copy_id)] * 2)
    saver.copy_thread(thread_id, copy_id)
    copied = [each for each in counter(saver, 3).get_state_history(config_of(copy_id))]
    original = [each for each in counter(saver, 3).get_state_history(config_of(thread_id))]
    assert [each.values for each in copied] == [each.values for each in original]
    assert copied[0].values["seen"] == [0, 1, 2]
    assert (counter(saver, 5).invoke({"n": 3}, config_of(copy_id)))["deltas"] == [0, 1, 2, 3, 4]


def test_a_deleted_thread_can_be_stored_again(saver: AnnalsSaver) -> None:
    config = config_of(new_name("again"))
    one = checkpoint(1, {"a": 1}, {"a": 1})
    for _ in range(2):
        saver.put(config, one, METADATA, {"a": 1})
        found = saver.get_tuple(config)
        assert found
        assert found.checkpoint["channel_values"] == {"a": 1}
        saver.delete_thread(config["configurable"]["thread_id"])
        assert saver.get_tuple(config) is None


def test_a_run_loses_and_doubles_nothing_when_the_service_is_killed_in_the_middle(
    service: Service, killable: KillableNode
) -> None:
    config = config_of(new_name("killed"), recursion_limit=100)
    with Annals(url=killable.url, token=service.token, timeout_s=90, retries=200) as annals:
        graph = counter(AnnalsSaver(annals), 20, lambda n: killable.kill() if n == 8 else None)
        done = graph.invoke({"n": 0, "book": "b"}, config)
        assert done["seen"] == done["deltas"] == [*range(20)]
        history = [each.values.get("n") for each in graph.get_state_history(config)]
        assert history == [*range(20, -1, -1), None]
        keys = [entry.get("key", "") for entry in entries_of(annals, config["configurable"]["thread_id"])]
    checkpoints = [key for key in keys if key.startswith("checkpoint/")]
    assert len(checkpoints) == len({*checkpoints}) == 22
