"""A service that answers from a script, with a clock of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import httpx

Step = Callable[["Received"], httpx.Response]


@dataclass
class Received:
    request: httpx.Request
    at_s: float
    clock: Clock

    @property
    def line(self) -> str:
        path = self.request.url.raw_path.decode().removeprefix("/api/v1")
        return f"{self.request.method} {path}"


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    async def async_sleep(self, seconds: float) -> None:
        self.sleep(seconds)


class ScriptedService:
    def __init__(self, clock: Clock, *steps: Step) -> None:
        self._clock = clock
        self._steps = [*steps]
        self.received: list[Received] = []
        self.transport = httpx.MockTransport(self._answer)

    @property
    def waits_s(self) -> list[float]:
        times = [received.at_s for received in self.received]
        return [after - before for before, after in pairwise(times)]

    def headers(self, name: str) -> list[str | None]:
        return [received.request.headers.get(name) for received in self.received]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        received = Received(request, self._clock.now_s, self._clock)
        self.received.append(received)
        if not self._steps:
            raise AssertionError(f"unexpected request: {received.line}")
        return self._steps.pop(0)(received)


def ok(data: object = None) -> Step:
    envelope: dict[str, object] = {"code": 0, "error": "", "msg": "ok", "data": {} if data is None else data}
    return lambda _: httpx.Response(200, json=envelope)


def refused(status: int, error: str, headers: dict[str, str] | None = None) -> Step:
    envelope = {"code": status, "error": error, "msg": f"It is {error}."}
    return lambda _: httpx.Response(status, json=envelope, headers={"x-request-id": "r-1", **(headers or {})})


def answered(status: int, text: str) -> Step:
    """An answer of something other than Annals."""
    return lambda _: httpx.Response(status, text=text)


def broken(_: Received) -> httpx.Response:
    raise httpx.ReadError("the connection broke")


def silent(received: Received) -> httpx.Response:
    """No answer until the client's timeout."""
    received.clock.sleep(received.request.extensions["timeout"]["read"])
    raise httpx.ReadTimeout("")


def sent_json(received: Received) -> object:
    return json.loads(received.request.content or b"null")
