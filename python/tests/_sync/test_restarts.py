"""The service is killed while a tail follows and others append."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from annals import Annals

from ..concurrency import together
from ..service import Service, free_port

pytestmark = pytest.mark.anyio

KILLS = 3 if os.environ.get("TEST_THOROUGH") == "1" else 1
WRITERS = 2


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


def test_nothing_is_lost_or_doubled_when_the_service_is_killed_again_and_again(service: Service) -> None:
    port = free_port()
    node = service.start_node(port)
    appended: list[int] = []
    seqs: list[int] = []
    lost: list[str] = []
    enough = threading.Event()

    def kill_again_and_again() -> None:
        nonlocal node
        try:
            for _ in range(KILLS):
                seen = len(seqs)
                until(lambda: len(seqs) > seen + 5)  # noqa: B023
                node.kill()
                node = service.start_node(port)
            seen = len(seqs)
            until(lambda: len(seqs) > seen + 5)
        finally:
            enough.set()

    with Annals(url=node.url, token=service.token, timeout_s=90, retries=200) as annals:
        session_id = (annals.sessions.create())["id"]

        def write() -> None:
            while not enough.is_set():
                event = annals.sessions.append(session_id, type="note", data={"after": len(appended)})
                appended.append(event["seq"])

        def write_all() -> None:
            together(*[write] * WRITERS)
            annals.sessions.append(session_id, type="end", data={})

        def follow() -> None:
            with closing(
                annals.sessions.tail(session_id, on_disconnect=lambda error: lost.append(error.error))
            ) as tail:
                for item in tail:
                    seqs.append(item["seq"])
                    if item["kind"] == "event" and item["type"] == "end":
                        break

        killer = threading.Thread(target=kill_again_and_again)
        killer.start()
        together(write_all, follow)
        killer.join()
        stored = [event["seq"] for event in annals.sessions.events(session_id, limit=200)]
    node.stop()
    assert sorted(appended) == [*range(1, len(appended) + 1)]
    assert stored == seqs == [*range(1, len(appended) + 2)]
    assert len(lost) >= KILLS
