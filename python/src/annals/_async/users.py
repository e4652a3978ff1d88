from __future__ import annotations

from typing import Unpack

from .._call import Call
from ..types import ErasedUser, Page, User, UserResources, UsersQuery
from .list import AsyncList
from .transport import AsyncTransport


class AsyncUsers:
    """The project's users, who come to be when they are first named."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, **query: Unpack[UsersQuery]) -> AsyncList[User, Page[User]]:
        """The project's users in order of first use."""
        return AsyncList(self._transport, ("user", "ls"), query)

    async def resources(self, identifier: str) -> UserResources:
        """How much the user has."""
        return await self._transport.call(Call("GET", ("user", identifier, "resources")))

    async def erase(self, identifier: str) -> ErasedUser:
        """Erases the user and everything of the user's, and gives what it removed.

        That is told only once, so a call whose answer was lost is not made again: it raises, and when it is called
        anew, 404 says that the user is gone.
        """
        return await self._transport.call(Call("DELETE", ("user", identifier), once=True))
