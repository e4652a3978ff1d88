from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from annals import Annals, _call
from annals._sync import tail, transport

from ..scripted_service import Clock, ScriptedService, Step
from ..service import Service


@pytest.fixture
def annals(service: Service) -> Iterator[Annals]:
    with Annals(url=service.url, token=service.token) as annals:
        yield annals


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that advances only while a client waits."""
    clock = Clock()
    for module in (_call, transport):
        monkeypatch.setattr(module, "monotonic", clock.monotonic)
    for module in (transport, tail):
        monkeypatch.setattr(module, "sleep", clock.sleep)
    return clock


@pytest.fixture
def scripted(clock: Clock) -> Callable[..., tuple[Annals, ScriptedService]]:
    """A client of a scripted service: `annals, service = scripted(ok(), retries=1)`."""

    def make(*steps: Step, **options: object) -> tuple[Annals, ScriptedService]:
        service = ScriptedService(clock, *steps)
        http = httpx.Client(transport=service.transport)
        annals = Annals(token="sk-1", http_client=http, **options)  # pyright: ignore[reportArgumentType]
        return annals, service

    return make
