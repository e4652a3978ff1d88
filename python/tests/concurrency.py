"""What differs between async and sync tests; generate_sync.py replaces the async names by the sync ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
AsyncResult: TypeAlias = Awaitable[object]
Result: TypeAlias = object


async def async_together(*functions: Callable[[], Awaitable[T]]) -> list[T]:
    """Runs functions concurrently and returns their results."""
    return [*await asyncio.gather(*(function() for function in functions))]


def together(*functions: Callable[[], T]) -> list[T]:
    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(function) for function in functions]]


def async_run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a test that is not one itself, such as a property."""
    return asyncio.run(work)


def sync_run(result: T) -> T:
    return result
