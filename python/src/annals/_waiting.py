"""What differs between the async and the sync client; generate_sync.py replaces the async names by the sync ones."""

from asyncio import Semaphore as AsyncSemaphore
from asyncio import sleep as async_sleep
from collections.abc import AsyncGenerator, Generator
from threading import Semaphore
from time import sleep
from typing import TypeAlias, TypeVar

__all__ = ["AsyncSemaphore", "AsyncStream", "Semaphore", "Stream", "async_sleep", "sleep"]

_T = TypeVar("_T")

AsyncStream: TypeAlias = AsyncGenerator[_T, None]
Stream: TypeAlias = Generator[_T, None, None]
