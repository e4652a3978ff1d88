"""What differs between the async and the sync client; generate_sync.py replaces the async names by the sync ones."""

from asyncio import Event as AsyncEvent
from asyncio import Semaphore as AsyncSemaphore
from asyncio import sleep as async_sleep
from collections.abc import AsyncGenerator, Generator
from threading import Event, Semaphore
from time import sleep
from typing import Protocol, TypeAlias, TypeVar

__all__ = [
    "AsyncEvent",
    "AsyncSemaphore",
    "AsyncStream",
    "AsyncUse",
    "Event",
    "Semaphore",
    "Stream",
    "Use",
    "async_sleep",
    "sleep",
]

_T = TypeVar("_T")
_Answer = TypeVar("_Answer", covariant=True)

AsyncStream: TypeAlias = AsyncGenerator[_T, None]
Stream: TypeAlias = Generator[_T, None, None]


class AsyncUse(Protocol[_Answer]):
    async def __call__(self) -> _Answer: ...


class Use(Protocol[_Answer]):
    def __call__(self) -> _Answer: ...
