"""Tails of a scripted service; test_restarts.py kills a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals import AnnalsError, AsyncAnnals, _retry

from ..concurrency import async_run
from ..scripted_service import Received, ScriptedService, Step, answered, broken, ok, refused

pytestmark = pytest.mark.anyio

ID = "01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d"
Scripted = Callable[..., tuple[AsyncAnnals, ScriptedService]]


def entry(seq: int, text: str = "") -> bytes:
    return f'id: {seq}\nevent: event\ndata: {{"kind":"event","seq":{seq},"text":"{text}"}}\n\n'.encode()


RENEW = b'event: renew\ndata: {"expires_at":"2026-11-26T09:00:00Z"}\n\n'


def stream(*pieces: bytes, end: Exception | None = None) -> Step:
    """An answer with these chunks, after which the connection ends or breaks."""

    async def content() -> AsyncIterator[bytes]:
        yield b"retry: 100\n\n"
        for piece in pieces:
            yield piece
        if end:
            raise end

    def answer(_: Received) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=content())

    return answer


def no_pause(_shortest: float, _longest: float) -> float:
    return 0.0


async def take(annals: AsyncAnnals, count: int, **options: object) -> tuple[list[int], list[str]]:
    """The first seqs of a tail, and the errors of the connections that were lost."""
    lost: list[str] = []
    seqs: list[int] = []
    tail = annals.sessions.tail(ID, on_disconnect=lambda error: lost.append(error.error), **options)  # pyright: ignore[reportArgumentType]
    async for item in tail:
        seqs.append(item["seq"])
        if len(seqs) == count:
            break
    await tail.aclose()
    return seqs, lost


async def test_a_tail_resumes_after_the_last_entry_that_it_returned(scripted: Scripted) -> None:
    annals, service = scripted(
        stream(entry(3), entry(4)),
        stream(entry(4), entry(5), entry(6)[:-1], end=httpx.ReadError("reset")),
        stream(entry(6), end=httpx.ReadTimeout("")),
        refused(503, "unavailable"),
        answered(502, "<html>"),
        broken,
        stream(entry(7)),
    )
    seqs, lost = await take(annals, 5, after=2, kind="event")
    assert seqs == [3, 4, 5, 6, 7]
    assert lost == [
        "connection_failed",
        "connection_failed",
        "timeout",
        "unavailable",
        "unexpected_answer",
        "connection_failed",
    ]
    assert service.headers("last-event-id") == [None, "4", "5", "6", "6", "6", "6"]
    assert {received.line for received in service.received} == {f"GET /session/{ID}/timeline?kind=event&after_seq=2"}
    assert {*service.headers("accept")} == {"text/event-stream"}


async def test_a_tail_names_the_last_whole_entry_as_the_service_does(scripted: Scripted) -> None:
    def place(seq: int) -> str:
        return f"{seq}@2026-11-21T09:30:00.00000{seq}Z"

    annals, service = scripted(
        stream(entry(2), f"id: {place(2)}\n\n".encode(), entry(3)[:10], end=httpx.ReadError("reset")),
        stream(entry(3) + f"id: {place(3)}\n\n".encode()),
        stream(entry(4)),
    )
    first = {"seq": 1, "created_at": "2026-11-21T09:30:00.000001Z"}
    assert (await take(annals, 3, after=first))[0] == [2, 3, 4]
    assert service.headers("last-event-id") == [place(1), place(2), place(3)]


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 3)), max_size=12), st.integers(1, 20))
def test_a_tail_returns_each_entry_once_and_in_order_wherever_its_connections_break(
    breaks: list[tuple[int, int]], count: int
) -> None:
    remaining = [*breaks]

    def answer(request: httpx.Request) -> httpx.Response:
        # Some entries before the requested place are sent again.
        last = int(request.headers.get("last-event-id", "0"))
        cut, repeated = remaining.pop() if remaining else (None, 0)
        entries = [entry(seq, "ü" * seq) for seq in range(max(1, last + 1 - repeated), count + 1)]
        return stream(b"".join(entries)[:cut])(Received(request, 0, None))  # pyright: ignore[reportArgumentType]

    async def follow() -> list[int]:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        annals = AsyncAnnals(token="sk-1", http_client=http)
        return (await take(annals, count))[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_retry.random, "uniform", no_pause)
        assert async_run(follow()) == [*range(1, count + 1)]


@pytest.mark.parametrize(
    ("status", "error"), [(401, "unauthorized"), (403, "insufficient_scope"), (404, "session_not_found")]
)
async def test_a_tail_raises_if_the_service_refuses_it(scripted: Scripted, status: int, error: str) -> None:
    annals, service = scripted(stream(entry(1)), refused(status, error))
    with pytest.raises(AnnalsError) as caught:
        await take(annals, 2)
    assert (caught.value.status, caught.value.error) == (status, error)
    assert len(service.received) == 2


async def test_a_tail_raises_if_something_other_than_annals_answers(scripted: Scripted) -> None:
    for step in (answered(200, "<h1>Welcome</h1>"), ok()):
        annals, _ = scripted(step)
        with pytest.raises(AnnalsError, match="unexpected_answer: The tail was answered 200"):
            await take(annals, 1)


async def test_a_tail_fails_after_the_retries_if_the_service_never_answers(scripted: Scripted) -> None:
    annals, service = scripted(broken, broken, broken, retries=2)
    with pytest.raises(AnnalsError, match="connection_failed"):
        await take(annals, 1)
    assert len(service.received) == 3


async def test_a_tail_reconnects_without_limit_after_the_first_answer(scripted: Scripted) -> None:
    annals, service = scripted(stream(), *[broken] * 200, stream(entry(1)), retries=2)
    assert (await take(annals, 1))[0] == [1]
    assert max(service.waits_s) <= 5


async def test_a_tail_pauses_as_the_server_asks_and_not_longer_while_entries_arrive(scripted: Scripted) -> None:
    annals, service = scripted(*[stream(entry(seq)) for seq in range(1, 21)])
    await take(annals, 20)
    assert all(0.05 <= wait <= 0.1 for wait in service.waits_s)


async def test_a_tail_reports_its_connections(scripted: Scripted) -> None:
    annals, _ = scripted(stream(), broken, stream(entry(1)))
    connections: list[None] = []
    assert await take(annals, 1, on_connect=lambda: connections.append(None)) == ([1], ["connection_failed"] * 2)
    assert len(connections) == 2


async def test_closing_a_tail_closes_its_connection_before_it_returns(scripted: Scripted) -> None:
    closed: list[bool] = []

    class Connection(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield entry(1)
            yield entry(2)

        async def aclose(self) -> None:
            closed.append(True)

    def answer(_: Received) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Connection())

    annals, _ = scripted(answer)
    tail = annals.sessions.tail(ID)
    assert (await anext(tail))["seq"] == 1
    assert closed == []
    await tail.aclose()
    assert closed == [True]


async def test_goes_on_with_another_token_when_the_service_asks_for_one(scripted: Scripted) -> None:
    given = ["st-2"]

    async def renew() -> str:
        return given.pop()

    annals, service = scripted(stream(entry(1), RENEW), stream(entry(2)), renew=renew)
    seqs: list[int] = []
    async for item in annals.sessions.tail(ID):
        seqs.append(item["seq"])
        if item["seq"] == 2:
            break
    assert seqs == [1, 2]
    assert service.headers("authorization") == ["Bearer sk-1", "Bearer st-2"]


async def test_asks_again_for_another_token_and_tells_in_the_end_why_there_is_none(scripted: Scripted) -> None:
    answers: list[str | Exception] = [OSError("no route"), "st-2"]

    async def renew() -> str:
        answer = answers.pop(0) if answers else RuntimeError("the vault is closed")
        if isinstance(answer, Exception):
            raise answer
        return answer

    streams = [stream(entry(1), RENEW), stream(RENEW), stream(entry(2), RENEW), *[stream(RENEW)] * 9]
    annals, service = scripted(*streams, renew=renew, retries=3)
    seqs: list[int] = []

    async def follow() -> None:
        async for item in annals.sessions.tail(ID):
            seqs.append(item["seq"])

    with pytest.raises(AnnalsError, match="the vault is closed") as raised:
        await follow()
    assert seqs == [1, 2]
    assert isinstance(raised.value.__cause__, RuntimeError)
    assert service.headers("authorization") == ["Bearer sk-1"] * 2 + ["Bearer st-2"] * 4
