from __future__ import annotations

from typing_extensions import Unpack

from .._call import Call
from ..types import ErasedUser, Page, User, UserResources, UsersQuery
from .list import AsyncList
from .transport import AsyncTransport

# Without a limit the API sends all users as one page, which would need memory for all of them.
_USER_PAGE_LIMIT = 200


class AsyncUsers:
    """The project's users, who are created on first use."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, **query: Unpack[UsersQuery]) -> AsyncList[User, Page[User]]:
        """The project's users, in order of first use."""
        return AsyncList(self._transport, ("user", "ls"), {"limit": _USER_PAGE_LIMIT, **query})

    async def resources(self, identifier: str) -> UserResources:
        """How many resources the user has."""
        return await self._transport.call(Call("GET", ("user", identifier, "resources")))

    async def erase(self, identifier: str) -> ErasedUser:
        """Erases the user and all the user's data, and returns the counts of what it removed.

        The counts are returned only once, so a call whose answer was lost is not retried: it raises. Call it again:
        404 means that the user is gone.
        """
        return await self._transport.call(Call("DELETE", ("user", identifier), once=True))
