from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from typing_extensions import Unpack

from .._call import Call
from ..types import CreatedKey, NewKey, Redaction, Token
from .transport import Transport

if TYPE_CHECKING:
    import builtins


class Keys:
    """The project's API keys, for a client whose own key has the scope `admin`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, **key: Unpack[NewKey]) -> CreatedKey:
        """Creates a key. Its secret is shown only this once."""
        return self._transport.call(Call("POST", ("keys",), body=key, once=True))

    def list(self) -> builtins.list[Token]:
        """The keys, oldest first, without their secrets."""
        answer = cast("dict[str, builtins.list[Token]]", self._transport.call(Call("GET", ("keys",))))
        return answer["items"]

    def revoke(self, key_id: str) -> Token:
        """Revokes a key: every node refuses it within 5 seconds."""
        return self._transport.call(Call("DELETE", ("keys", key_id)))


class RedactionRules:
    """What the project's entries are cleared of, for a client whose own key has the scope `admin`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self) -> Redaction:
        """The rules; None: redaction is off."""
        return self._transport.call(Call("GET", ("redaction",)))

    def set(self, rules: builtins.list[dict[str, Any]] | None = None) -> Redaction:
        """Sets the rules; by default, secrets are masked as they are written, and personal data for masked keys."""
        body = {} if rules is None else {"rules": rules}
        return self._transport.call(Call("PUT", ("redaction",), body=body))

    def delete(self) -> Redaction:
        """Switches redaction off. Masked keys go on reading masks."""
        return self._transport.call(Call("DELETE", ("redaction",)))
