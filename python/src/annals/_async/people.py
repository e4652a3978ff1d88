from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from typing_extensions import Unpack

from .._call import Call
from ..types import CreatedKey, Member, NewMember, NewPersonalToken, Token
from .transport import AsyncTransport

if TYPE_CHECKING:
    import builtins


class AsyncMembers:
    """The people of the project, for a client whose own key has the scope `admin`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> builtins.list[Member]:
        """All members, in the order in which they were added."""
        answer = cast("dict[str, builtins.list[Member]]", await self._transport.call(Call("GET", ("members",))))
        return answer["items"]

    async def invite(self, **member: Unpack[NewMember]) -> Member:
        """Makes whoever signs in with a verified address a member. Nothing is sent to it."""
        return await self._transport.call(Call("POST", ("members",), body=member, once=True))

    async def change(self, member_id: str, role: Literal["admin", "member", "viewer"]) -> Member:
        """Gives a member another role, within 5 seconds."""
        return await self._transport.call(Call("PATCH", ("members", member_id), body={"role": role}))

    async def remove(self, member_id: str) -> None:
        """Removes a member, whose sessions and personal tokens end."""
        await self._transport.call(Call("DELETE", ("members", member_id), done_when="member_not_found"))


class AsyncPersonalTokens:
    """The personal tokens of whoever the client's own one belongs to. `annals login` makes them."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, **token: Unpack[NewPersonalToken]) -> CreatedKey:
        """Makes one, for a page of the console: personal tokens make no others."""
        return await self._transport.call(Call("POST", ("personal_tokens",), body=token, once=True))

    async def list(self) -> builtins.list[Token]:
        """Those that are valid, oldest first, without their secrets."""
        call = Call("GET", ("personal_tokens",))
        return cast("dict[str, builtins.list[Token]]", await self._transport.call(call))["items"]

    async def revoke(self, token_id: str) -> Token:
        """Revokes one: every node refuses it within 5 seconds."""
        return await self._transport.call(Call("DELETE", ("personal_tokens", token_id)))
