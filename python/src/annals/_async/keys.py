from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from typing_extensions import Unpack

from .._call import Call
from ..types import CreatedKey, NewKey, Redaction, Token
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


class AsyncRedactionRules:
    """What the project's entries are cleared of, for a client whose own key has the scope `admin`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self) -> Redaction:
        """The rules; None: redaction is off."""
        return await self._transport.call(Call("GET", ("redaction",)))

    async def set(self, rules: builtins.list[dict[str, Any]] | None = None) -> Redaction:
        """Sets the rules; by default, secrets are masked as they are written, and personal data for masked keys."""
        body = {} if rules is None else {"rules": rules}
        return await self._transport.call(Call("PUT", ("redaction",), body=body))

    async def delete(self) -> Redaction:
        """Switches redaction off. Masked keys go on reading masks."""
        return await self._transport.call(Call("DELETE", ("redaction",)))
