from __future__ import annotations

from typing import TYPE_CHECKING, cast

from typing_extensions import Unpack

from .._call import Call
from ..types import CreatedWebhook, NewWebhook, Webhook
from .transport import Transport

if TYPE_CHECKING:
    import builtins


class Webhooks:
    """Where the project is told of new entries."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, **webhook: Unpack[NewWebhook]) -> CreatedWebhook:
        """Creates a webhook. Its secret, which verifies deliveries, is shown only this once."""
        return self._transport.call(Call("POST", ("webhooks",), body=webhook))

    def list(self) -> builtins.list[Webhook]:
        """The project's webhooks, oldest first, without their secrets."""
        answer = cast("dict[str, builtins.list[Webhook]]", self._transport.call(Call("GET", ("webhooks",))))
        return answer["items"]

    def delete(self, webhook_id: str) -> None:
        """Deletes a webhook; what was not delivered is dropped."""
        self._transport.call(Call("DELETE", ("webhooks", webhook_id), done_when="webhook_not_found"))
