from __future__ import annotations

from typing import TYPE_CHECKING, cast

from typing_extensions import Unpack

from .._call import Call
from ..types import CreatedWebhook, NewWebhook, Webhook
from .transport import AsyncTransport

if TYPE_CHECKING:
    import builtins


class AsyncWebhooks:
    """Where the project is told of new entries."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, **webhook: Unpack[NewWebhook]) -> CreatedWebhook:
        """Creates a webhook. Its secret, which verifies deliveries, is shown only this once."""
        return await self._transport.call(Call("POST", ("webhooks",), body=webhook))

    async def list(self) -> builtins.list[Webhook]:
        """The project's webhooks, oldest first, without their secrets."""
        answer = cast("dict[str, builtins.list[Webhook]]", await self._transport.call(Call("GET", ("webhooks",))))
        return answer["items"]

    async def delete(self, webhook_id: str) -> None:
        """Deletes a webhook; what was not delivered is dropped."""
        await self._transport.call(Call("DELETE", ("webhooks", webhook_id), done_when="webhook_not_found"))
