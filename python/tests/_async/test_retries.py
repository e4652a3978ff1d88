"""Retries, with a scripted service and a clock that advances only while the client waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import httpx
import pytest

from annals import AnnalsError, AsyncAnnals
from annals._waiting import async_sleep

from ..concurrency import AsyncResult, async_together
from ..scripted_service import Clock, Received, ScriptedService, Step, answered, broken, ok, refused, silent

pytestmark = pytest.mark.anyio

ID = "01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d"
GONE = refused(404, "session_not_found")

Method = Callable[[AsyncAnnals], AsyncResult]
Scripted = Callable[..., tuple[AsyncAnnals, ScriptedService]]


async def append(annals: AsyncAnnals) -> object:
    return await annals.sessions.append(ID, type="note", data={})


async def delete(annals: AsyncAnnals) -> object:
    return await annals.sessions.delete(ID)


async def erase(annals: AsyncAnnals) -> object:
    return await annals.users.erase("ada")


async def failure(method: Method, annals: AsyncAnnals) -> AnnalsError:
    with pytest.raises(AnnalsError) as caught:
        await method(annals)
    return caught.value


FAILURES: dict[str, Step] = {
    "429": refused(429, "rate_limited"),
    "503": refused(503, "unavailable"),
    "a proxy's 502": answered(502, "<html>Bad Gateway</html>"),
    "a proxy's 504": answered(504, ""),
    "a proxy's 503": answered(503, "busy"),
    "a broken connection": broken,
    "no answer in time": silent,
}


@pytest.mark.parametrize("step", FAILURES.values(), ids=FAILURES.keys())
async def test_a_call_is_retried_with_the_same_key_and_body_after(scripted: Scripted, step: Step) -> None:
    annals, service = scripted(step, step, ok({"seq": 1}))
    assert await append(annals) == {"seq": 1}
    assert len(service.received) == 3
    assert len(set(service.headers("idempotency-key"))) == 1
    assert len({received.request.content for received in service.received}) == 1


async def test_a_call_with_an_expired_token_is_repeated_with_another(scripted: Scripted) -> None:
    given = ["st-2"]

    async def renew() -> str:
        return given.pop()

    annals, service = scripted(refused(401, "unauthorized"), ok({"seq": 1}), ok({"seq": 2}), renew=renew)
    assert await append(annals) == {"seq": 1}
    assert await append(annals) == {"seq": 2}
    assert service.headers("authorization") == ["Bearer sk-1", "Bearer st-2", "Bearer st-2"]


async def test_a_token_that_cannot_be_renewed_at_once_is_asked_for_again(scripted: Scripted) -> None:
    answers: list[str | Exception] = [OSError("no route"), "st-2", OSError("no route"), OSError("still none")]

    async def renew() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    annals, service = scripted(refused(401, "unauthorized"), ok({"seq": 1}), renew=renew, retries=2)
    assert await append(annals) == {"seq": 1}
    assert service.headers("authorization") == ["Bearer sk-1", "Bearer st-2"]
    annals, _ = scripted(refused(401, "unauthorized"), renew=renew, retries=2)
    with pytest.raises(AnnalsError, match="still none") as raised:
        await append(annals)
    assert isinstance(raised.value.__cause__, OSError)


async def test_each_call_has_its_own_key(scripted: Scripted) -> None:
    annals, service = scripted(ok(), ok())
    await append(annals)
    await append(annals)
    assert len(set(service.headers("idempotency-key"))) == 2


async def test_pauses_double_up_to_5_seconds_and_have_jitter(scripted: Scripted) -> None:
    annals, service = scripted(*[broken] * 8, ok(), retries=8, timeout_s=60)
    await append(annals)
    longest = [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]
    assert all(most / 2 <= wait <= most for wait, most in zip(service.waits_s, longest, strict=True))
    assert len(set(service.waits_s[-3:])) > 1


async def test_a_pause_is_never_shorter_than_retry_after(scripted: Scripted) -> None:
    date = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=9), usegmt=True)
    soon = refused(503, "overloaded", {"retry-after": "2"})
    later = refused(429, "rate_limited", {"retry-after": date})
    annals, service = scripted(soon, later, ok())
    await append(annals)
    assert 2 <= service.waits_s[0] <= 2.2
    assert 7 <= service.waits_s[1] <= 9.4


@pytest.mark.parametrize("header", ["soon", "-1", "", "Sun, 99 Nov 2026 25:00:00 GMT"])
async def test_an_invalid_retry_after_is_ignored(scripted: Scripted, header: str) -> None:
    annals, service = scripted(refused(503, "overloaded", {"retry-after": header}), ok())
    await append(annals)
    assert service.waits_s[0] <= 0.2


async def test_a_call_fails_at_once_if_its_pause_would_exceed_the_deadline(scripted: Scripted, clock: Clock) -> None:
    annals, service = scripted(refused(503, "unavailable", {"retry-after": "60"}))
    error = await failure(append, annals)
    assert (error.status, error.error, error.retry_after_s, error.request_id) == (503, "unavailable", 60, "r-1")
    assert (len(service.received), clock.now_s) == (1, 0)


async def test_the_last_failure_is_raised_after_all_retries(scripted: Scripted) -> None:
    for options, attempts in (({}, 6), ({"retries": 1}, 2), ({"retries": 0}, 1)):
        annals, service = scripted(*[broken] * attempts, **options)
        error = await failure(append, annals)
        assert (error.status, error.error) == (0, "connection_failed")
        assert len(service.received) == attempts


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 500])
async def test_a_refusal_is_raised_at_once(scripted: Scripted, status: int) -> None:
    annals, service = scripted(refused(status, "some_error"))
    error = await failure(append, annals)
    assert (error.status, error.error, error.message) == (status, "some_error", "It is some_error.")
    assert str(error) == "some_error: It is some_error."
    assert len(service.received) == 1


IDEMPOTENT: list[Method] = [
    delete,
    lambda annals: annals.sessions.configs.replace(ID, {}),
    lambda annals: annals.sessions.configs.merge(ID, {}),
    lambda annals: annals.sessions.patch_message_meta(ID, ID, {}),
    lambda annals: annals.learning_spaces.merge(ID, {}),
    lambda annals: annals.learning_spaces.delete(ID),
]


@pytest.mark.parametrize("method", IDEMPOTENT)
async def test_an_idempotent_write_is_retried(scripted: Scripted, method: Method) -> None:
    annals, service = scripted(broken, silent, ok())
    await method(annals)
    assert len(service.received) == 3


@pytest.mark.parametrize("lost", [broken, silent, answered(503, "busy"), answered(504, "")])
async def test_a_deletion_succeeds_if_a_retry_after_a_lost_answer_finds_nothing(scripted: Scripted, lost: Step) -> None:
    annals, _ = scripted(lost, refused(503, "unavailable"), GONE)
    assert await delete(annals) is None
    annals, _ = scripted(lost, refused(404, "learning_space_not_found"))
    assert await annals.learning_spaces.delete(ID) is None


@pytest.mark.parametrize(
    "steps", [(GONE,), (refused(503, "unavailable"), GONE), (broken, refused(404, "route_not_found"))]
)
async def test_a_deletion_raises_404_if_no_attempt_can_have_deleted_anything(
    scripted: Scripted, steps: tuple[Step, ...]
) -> None:
    annals, _ = scripted(*steps)
    assert (await failure(delete, annals)).status == 404


async def test_an_erasure_is_retried_only_if_nothing_was_done(scripted: Scripted) -> None:
    deleted = {"deleted": {"sessions": 1, "entries": 2, "learning_spaces": 0}}
    annals, _ = scripted(refused(503, "unavailable"), ok(deleted))
    assert await erase(annals) == deleted
    annals, service = scripted(refused(503, "unavailable"), broken)
    assert (await failure(erase, annals)).error == "connection_failed"
    assert len(service.received) == 2
    annals, service = scripted(answered(503, "busy"))
    assert (await failure(erase, annals)).error == "unexpected_answer"


async def test_a_call_takes_30_seconds_at_most_and_an_attempt_a_third(scripted: Scripted, clock: Clock) -> None:
    annals, service = scripted(silent, silent, silent)
    error = await failure(append, annals)
    assert (error.error, error.message[-12:]) == ("timeout", "within 30 s.")
    assert service.received[1].at_s >= 10
    assert clock.now_s == pytest.approx(30)


async def test_at_most_32_calls_are_in_flight_even_with_clients_that_share_connections() -> None:
    in_flight: list[None] = []
    seen: list[int] = []

    async def answer(_: httpx.Request) -> httpx.Response:
        in_flight.append(None)
        seen.append(len(in_flight))
        while len(seen) < 32:
            await async_sleep(0.001)
        # Time for a further call to arrive, if it could.
        await async_sleep(0.02)
        in_flight.pop()
        return httpx.Response(200, json={"code": 0, "error": "", "msg": "ok", "data": {}})

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    annals = AsyncAnnals(token="sk-1", http_client=http)
    await async_together(*[annals.ping, annals.with_options(retries=0).ping] * 20)
    assert (len(seen), max(seen)) == (40, 32)


async def test_limits_are_set_for_the_client_or_with_options(scripted: Scripted, clock: Clock) -> None:
    annals, service = scripted(silent, silent, silent, timeout_s=1, attempt_timeout_s=0.4, retries=1)
    assert (await failure(append, annals)).message.endswith("within 0.4 s.")
    assert (len(service.received), clock.now_s < 1) == (2, True)
    began_s = clock.now_s
    error = await failure(append, annals.with_options(timeout_s=0.25, retries=0))
    assert error.message.endswith("within 0.25 s.")
    assert clock.now_s - began_s == pytest.approx(0.25)


async def test_without_retries_an_attempt_has_all_the_time(scripted: Scripted, clock: Clock) -> None:
    annals, _ = scripted(silent, timeout_s=8, retries=0)
    await failure(append, annals)
    assert clock.now_s == pytest.approx(8)


async def test_a_call_with_a_slow_answer_ends_at_its_deadline(scripted: Scripted, clock: Clock) -> None:
    async def drops():
        for _ in range(60):
            clock.sleep(1)
            yield b" "

    def answer(_: Received) -> httpx.Response:
        return httpx.Response(200, content=drops())

    annals, service = scripted(answer, timeout_s=9, retries=0)
    assert (await failure(append, annals)).error == "timeout"
    assert (len(service.received), clock.now_s) == (1, 10)


@pytest.mark.parametrize(
    "step",
    [answered(200, "<h1>Welcome</h1>"), answered(200, "[]"), answered(200, '{"data":null}'), answered(302, ""), broken],
)
async def test_the_error_says_if_something_other_than_annals_answered(scripted: Scripted, step: Step) -> None:
    annals, _ = scripted(step, retries=0)
    error = await failure(append, annals)
    assert error.error == ("connection_failed" if step is broken else "unexpected_answer")
    assert f"POST http://127.0.0.1:8029/api/v1/session/{ID}/events" in error.message
