from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from .service import KillableNode, Service

# No deadline, because the machine may be busy.
settings.register_profile(
    "annals", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("annals")


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.end()


@pytest.fixture
def killable(service: Service) -> Iterator[KillableNode]:
    node = KillableNode(service)
    yield node
    node.end()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
