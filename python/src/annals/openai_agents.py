"""A session for the OpenAI Agents SDK: `AnnalsSession`. It needs `annals[openai-agents]`."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, cast

from agents import SessionSettings, TResponseInputItem
from agents.memory.session_settings import resolve_session_limit

from ._async.annals import AsyncAnnals
from ._async.keyed_session import append_to_keyed, read_whole_message, split_large_message
from ._errors import AnnalsError
from ._storable import BODY_BYTES_MAX, escape_json, stable_id
from .types import JsonObject, NewEntry, NewSession, TimelineItem

__all__ = ["AnnalsSession"]

# Most messages of one page, and most that one request retracts.
_MESSAGES_MAX = 1_000
# What an item that is none of the Responses API is stored in.
_OWN_TYPE = "openai_agents.item"
# How the SDK for JavaScript has a result's output, where it differs from the API.
_JAVASCRIPT_FIELD = "output_form"


class AnnalsSession:
    """A conversation of the OpenAI Agents SDK that is kept in Annals: its items are messages of the format `responses`.

    - `session_id`: the SDK's id for the conversation; any string. The session's own id, `id`, is made of it.
    - `user`: whose session it is: its data goes when the user is erased.
    - `configs`: what the session is created with, beside its `openai_agents_session`.
    - `session_settings`: the SDK's, such as the limit of `get_items`.
    - `body_bytes_max`: the service's `ANNALS_BODY_BYTES_MAX`, if it was changed.
    """

    def __init__(
        self,
        session_id: str,
        annals: AsyncAnnals,
        *,
        user: str | None = None,
        configs: Mapping[str, object] | None = None,
        session_settings: SessionSettings | None = None,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self.id = stable_id("openai-agents", session_id)
        self._annals = annals
        self._body_bytes_max = body_bytes_max
        all_configs = escape_json({**(configs or {}), "openai_agents_session": session_id})
        self._session: NewSession = {"use_uuid": self.id, "user": user, "configs": all_configs}

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The conversation's items, or the newest `limit` of them, in their order."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and limit <= 0:
            return []
        size = min(limit or _MESSAGES_MAX, _MESSAGES_MAX)
        messages = self._annals.sessions.messages(self.id, format="responses", limit=size, time_desc=limit is not None)
        items: list[JsonObject] = []
        try:
            # A page is in order, also where the pages go back in time.
            async for page in messages.pages():
                read = [await self._whole(blob, meta) for blob, meta in zip(page["items"], page["metas"], strict=True)]
                items = [*read, *items] if limit is not None else [*items, *read]
                if limit is not None and len(items) >= limit:
                    break
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise
        return [_item_of(item) for item in (items if limit is None else items[-limit:])]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items; more than one request carries in several."""
        key = secrets.token_hex(16)
        blobs = [cast(JsonObject, item) for item in items]
        try:
            await self._append([_own(blob) if blob.get("type") == _OWN_TYPE else blob for blob in blobs], key)
        except AnnalsError as error:
            # The service takes any item that says what it is, and refuses one that is not as its type says.
            if error.error != "invalid_request":
                raise
            await self._append([_own(blob) for blob in blobs], key, attempt=":own")

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the newest item; no two callers get the same one."""
        for item in await self._retract(1):
            if item["kind"] == "message":
                return _item_of(await self._whole(item["blob"], item["meta"]))
        return None

    async def clear_session(self) -> None:
        """Takes all items out of the conversation; its log keeps them."""
        while len(await self._retract(_MESSAGES_MAX)) == _MESSAGES_MAX:
            pass

    async def _append(self, blobs: list[JsonObject], key: str, attempt: str = "") -> None:
        entries: list[NewEntry] = []
        for index, blob in enumerate(blobs):
            message_id = stable_id(key, f"{index}")
            entries += split_large_message(
                {"kind": "message", "format": "responses", "id": message_id, "blob": blob}, self._body_bytes_max
            )
        await append_to_keyed(
            self._annals,
            self._session,
            entries,
            idempotency_key=f"{key}{attempt}",
            keeps_stored=True,
            body_bytes_max=self._body_bytes_max,
        )

    async def _whole(self, blob: JsonObject, meta: JsonObject) -> JsonObject:
        return (await read_whole_message(self._annals, self.id, blob, meta))[0]

    async def _retract(self, last: int) -> list[TimelineItem]:
        """The newest so many messages, which nobody else gets."""
        try:
            return (await self._annals.sessions.retract(self.id, last=last, kind="message"))["items"]
        except AnnalsError as error:
            if error.error != "session_not_found":
                raise
            return []


def _own(blob: JsonObject) -> JsonObject:
    return {"type": _OWN_TYPE, "item": blob}


def _item_of(stored: JsonObject) -> TResponseInputItem:
    given: dict[str, Any] = stored
    if given.get("type") == _OWN_TYPE:
        given = given["item"]
    elif given.get("type") == "function_call_output":
        given = {name: value for name, value in given.items() if name != _JAVASCRIPT_FIELD}
    return cast(TResponseInputItem, given)
