from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from typing_extensions import Unpack

from .._call import Call
from ..types import CreatedKey, Member, NewMember, NewPersonalToken, Token
from .transport import Transport

if TYPE_CHECKING:
    import builtins


class Members:
    """The people of the project, for a client whose own key has the scope `admin`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> builtins.list[Member]:
        """All members, in the order in which they were added."""
        answer = cast("dict[str, builtins.list[Member]]", self._transport.call(Call("GET", ("members",))))
        return answer["items"]

    def invite(self, **member: Unpack[NewMember]) -> Member:
        """Makes whoever signs in with a verified address a member. Nothing is sent to it."""
        return self._transport.call(Call("POST", ("members",), body=member, once=True))

    def change(self, member_id: str, role: Literal["admin", "member", "viewer"]) -> Member:
        """Gives a member another role, within 5 seconds."""
        return self._transport.call(Call("PATCH", ("members", member_id), body={"role": role}))

    def remove(self, member_id: str) -> None:
        """Removes a member, whose sessions and personal tokens end."""
        self._transport.call(Call("DELETE", ("members", member_id), done_when="member_not_found"))


class PersonalTokens:
    """The personal tokens of whoever the client's own one belongs to. `annals login` makes them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, **token: Unpack[NewPersonalToken]) -> CreatedKey:
        """Makes one, for a page of the console: personal tokens make no others."""
        return self._transport.call(Call("POST", ("personal_tokens",), body=token, once=True))

    def list(self) -> builtins.list[Token]:
        """Those that are valid, oldest first, without their secrets."""
        call = Call("GET", ("personal_tokens",))
        return cast("dict[str, builtins.list[Token]]", self._transport.call(call))["items"]

    def revoke(self, token_id: str) -> Token:
        """Revokes one: every node refuses it within 5 seconds."""
        return self._transport.call(Call("DELETE", ("personal_tokens", token_id)))
