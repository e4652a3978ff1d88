from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from .._call import Call
from ..types import LearningSpace, LearningSpacesQuery, NewLearningSpace, Page
from .list import List
from .transport import Transport


class LearningSpaces:
    """Learning spaces of the project or of its users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, **query: Unpack[LearningSpacesQuery]) -> List[LearningSpace, Page[LearningSpace]]:
        """The project's learning spaces, in order of `created_at`."""
        return List(self._transport, ("learning_spaces",), query)

    def create(self, *, idempotency_key: str | None = None, **space: Unpack[NewLearningSpace]) -> LearningSpace:
        return self._transport.call(
            Call("POST", ("learning_spaces",), body=space, keyed=True, idempotency_key=idempotency_key)
        )

    def get(self, learning_space_id: str) -> LearningSpace:
        return self._transport.call(Call("GET", ("learning_spaces", learning_space_id)))

    def merge(self, learning_space_id: str, meta: Mapping[str, object]) -> LearningSpace:
        """Merges into the meta; None deletes a key. Returns the learning space after the merge."""
        path = ("learning_spaces", learning_space_id)
        return self._transport.call(Call("PATCH", path, body={"meta": meta}))

    def delete(self, learning_space_id: str) -> None:
        path = ("learning_spaces", learning_space_id)
        self._transport.call(Call("DELETE", path, done_when="learning_space_not_found"))
