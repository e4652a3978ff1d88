"""What the async client and the sync one do each in a way of its own, under names that generate_sync.py swaps."""

from asyncio import sleep as async_sleep
from collections.abc import AsyncGenerator, Generator
from time import sleep
from typing import TypeAlias, TypeVar

__all__ = ["AsyncStream", "Stream", "async_sleep", "sleep"]

_T = TypeVar("_T")

AsyncStream: TypeAlias = AsyncGenerator[_T, None]
Stream: TypeAlias = Generator[_T, None, None]
