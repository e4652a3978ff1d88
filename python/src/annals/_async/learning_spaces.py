from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from .._call import Call
from ..types import LearningSpace, LearningSpacesQuery, NewLearningSpace, Page
from .list import AsyncList
from .transport import AsyncTransport


class AsyncLearningSpaces:
    """Learning spaces of the project or of its users."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, **query: Unpack[LearningSpacesQuery]) -> AsyncList[LearningSpace, Page[LearningSpace]]:
        """The project's learning spaces, in order of `created_at`."""
        return AsyncList(self._transport, ("learning_spaces",), query)

    async def create(self, *, idempotency_key: str | None = None, **space: Unpack[NewLearningSpace]) -> LearningSpace:
        return await self._transport.call(
            Call("POST", ("learning_spaces",), body=space, keyed=True, idempotency_key=idempotency_key)
        )

    async def get(self, learning_space_id: str) -> LearningSpace:
        return await self._transport.call(Call("GET", ("learning_spaces", learning_space_id)))

    async def merge(self, learning_space_id: str, meta: Mapping[str, object]) -> LearningSpace:
        """Merges into the meta; None deletes a key. Returns the learning space after the merge."""
        path = ("learning_spaces", learning_space_id)
        return await self._transport.call(Call("PATCH", path, body={"meta": meta}))

    async def delete(self, learning_space_id: str) -> None:
        path = ("learning_spaces", learning_space_id)
        await self._transport.call(Call("DELETE", path, done_when="learning_space_not_found"))
