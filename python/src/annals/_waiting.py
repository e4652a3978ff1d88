"""What differs between the async and the sync client; generate_sync.py replaces the async names by the sync ones."""

from asyncio import Event as AsyncEvent
from asyncio import Semaphore as AsyncSemaphore
from asyncio import TimeoutError as AsyncTimeout
from asyncio import create_task, wait_for
from asyncio import sleep as async_sleep
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from threading import Event, Semaphore, Thread
from time import sleep
from typing import Any, Protocol, TypeAlias, TypeVar

__all__ = [
    "AsyncBeside",
    "AsyncEvent",
    "AsyncSemaphore",
    "AsyncStream",
    "AsyncUse",
    "Beside",
    "Event",
    "Semaphore",
    "Stream",
    "Use",
    "async_sleep",
    "async_waited",
    "sleep",
    "waited",
]

_T = TypeVar("_T")
_Answer = TypeVar("_Answer", covariant=True)

AsyncStream: TypeAlias = AsyncGenerator[_T, None]
Stream: TypeAlias = Generator[_T, None, None]


class AsyncUse(Protocol[_Answer]):
    async def __call__(self) -> _Answer: ...


class Use(Protocol[_Answer]):
    def __call__(self) -> _Answer: ...


class AsyncBeside:
    """Runs something beside the caller, who has it end by itself and then waits for that."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = create_task(run())

    async def ended(self) -> None:
        await self._task


class Beside:
    def __init__(self, run: Callable[[], None]) -> None:
        self._thread = Thread(target=run, daemon=True)
        self._thread.start()

    def ended(self) -> None:
        self._thread.join()


async def async_waited(event: AsyncEvent, timeout_s: float) -> bool:
    """Waits for an event, and returns whether it came in time."""
    try:
        await wait_for(event.wait(), timeout_s)
    except (TimeoutError, AsyncTimeout):
        return False
    return True


def waited(event: Event, timeout_s: float) -> bool:
    return event.wait(timeout_s)
