"""What the async tests and the sync ones do each in a way of its own, under names that generate_sync.py swaps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
AsyncResult: TypeAlias = Awaitable[object]
Result: TypeAlias = object


async def async_together(*functions: Callable[[], Awaitable[T]]) -> list[T]:
    """What the functions give that run at the same time."""
    return [*await asyncio.gather(*(function() for function in functions))]


def together(*functions: Callable[[], T]) -> list[T]:
    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(function) for function in functions]]


def async_run(work: Coroutine[Any, Any, T]) -> T:
    """For what is not run as a test by itself, such as an example of a property."""
    return asyncio.run(work)


def sync_run(result: T) -> T:
    return result
