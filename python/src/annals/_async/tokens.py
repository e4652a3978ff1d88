from __future__ import annotations

from typing_extensions import Unpack

from .._call import Call
from ..types import IssuedToken, NewToken
from .transport import AsyncTransport


class AsyncTokens:
    """Tokens for a browser, a runner or a partner, which reach only some sessions."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, **token: Unpack[NewToken]) -> IssuedToken:
        """Makes a token. It is stored nowhere, and ends when it expires or the client's own key is revoked."""
        return await self._transport.call(Call("POST", ("tokens",), body=token))
