from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from annals import AsyncAnnals, _call
from annals._async import tail, transport

from ..scripted_service import Clock, ScriptedService, Step
from ..service import Service


@pytest.fixture
async def annals(service: Service) -> AsyncIterator[AsyncAnnals]:
    async with AsyncAnnals(url=service.url, token=service.token) as annals:
        yield annals


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that advances only while a client waits."""
    clock = Clock()
    for module in (_call, transport):
        monkeypatch.setattr(module, "monotonic", clock.monotonic)
    for module in (transport, tail):
        monkeypatch.setattr(module, "async_sleep", clock.async_sleep)
    return clock


@pytest.fixture
def scripted(clock: Clock) -> Callable[..., tuple[AsyncAnnals, ScriptedService]]:
    """A client of a scripted service: `annals, service = scripted(ok(), retries=1)`."""

    def make(*steps: Step, **options: object) -> tuple[AsyncAnnals, ScriptedService]:
        service = ScriptedService(clock, *steps)
        http = httpx.AsyncClient(transport=service.transport)
        annals = AsyncAnnals(token="sk-1", http_client=http, **options)  # pyright: ignore[reportArgumentType]
        return annals, service

    return make
