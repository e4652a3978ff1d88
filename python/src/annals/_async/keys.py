from __future__ import annotations

from typing import TYPE_CHECKING, cast

from typing_extensions import Unpack

from .._call import Call
from ..types import CreatedKey, NewKey, Token
from .transport import AsyncTransport

if TYPE_CHECKING:
    import builtins


class AsyncKeys:
    """The project's API keys, for a client whose own key has the scope `admin`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, **key: Unpack[NewKey]) -> CreatedKey:
        """Creates a key. Its secret is shown only this once."""
        return await self._transport.call(Call("POST", ("keys",), body=key, once=True))

    async def list(self) -> builtins.list[Token]:
        """The keys, oldest first, without their secrets."""
        answer = cast("dict[str, builtins.list[Token]]", await self._transport.call(Call("GET", ("keys",))))
        return answer["items"]

    async def revoke(self, key_id: str) -> Token:
        """Revokes a key: every node refuses it within 5 seconds."""
        return await self._transport.call(Call("DELETE", ("keys", key_id)))
