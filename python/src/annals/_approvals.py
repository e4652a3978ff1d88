"""Calls that need a yes before they run, as requests."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from decimal import Decimal
from typing import Any, TypedDict, cast

from ._async.annals import AsyncAnnals
from ._json import loads
from ._storable import escape_json
from .types import RunnerRequest

# Arguments of more bytes are shown by their beginning, and bound by their digest: a request has 64 KiB.
_ARGUMENTS_BYTES_MAX = 48 * 1024
_BEGINNING_LENGTH = 4_000
_NAME_LENGTH_MAX = 256
# How often open requests are read again, since nothing tells of one that expires.
_READ_AGAIN_S = 30.0


class WaitingCall(TypedDict):
    """`id`, a UUID, is the request's: the same in a retry, also of another process. `arguments` is JSON, as written."""

    id: str
    name: str
    arguments: str
    text: str


async def ask_for_calls(
    annals: AsyncAnnals, session_id: str, calls: Sequence[WaitingCall], fence: int | None = None
) -> list[RunnerRequest]:
    """Opens a request for each call, once; returns those that were opened before as they are now."""
    requests: list[RunnerRequest] = []
    for waiting in calls:
        call = {"name": waiting["name"][:_NAME_LENGTH_MAX] or "tool", "arguments": _arguments_of(waiting["arguments"])}
        asked = cast(Any, escape_json({"id": waiting["id"], "kind": "approval", "call": call, "text": waiting["text"]}))
        requests.append(await annals.runs.request(session_id, fence=fence, **asked))
    return requests


async def answers_to(annals: AsyncAnnals, asked: Sequence[RunnerRequest]) -> list[RunnerRequest]:
    """The requests, as soon as none of them is open."""
    requests = [*asked]
    while left := [request for request in requests if request["state"] == "open"]:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_one_is_resolved(annals, left), _READ_AGAIN_S)
        requests = [
            await annals.runs.get_request(request["id"]) if request["state"] == "open" else request
            for request in requests
        ]
    return requests


async def _one_is_resolved(annals: AsyncAnnals, left: Sequence[RunnerRequest]) -> None:
    ids = {request["id"] for request in left}
    after = min(request["seq"] for request in left)
    tail = annals.sessions.tail(left[0]["session_id"], after=after, type="annals.resolution")
    async with aclosing(tail) as answers:
        async for item in answers:
            if item["kind"] == "event" and item["data"].get("request_id") in ids:
                return


def reason_of(request: RunnerRequest) -> str:
    """What the model is told of a call that does not run."""
    if request["state"] == "expired":
        return "Nobody approved this call in time."
    by = request.get("by")
    return "This call was denied." if by is None else f"This call was denied by {by}."


def _arguments_of(written: str) -> object:
    """The arguments that a person is shown, and whose digest is approved: exact, or the text itself."""
    as_bytes = written.encode(errors="surrogatepass")
    if len(as_bytes) > _ARGUMENTS_BYTES_MAX:
        sha256 = hashlib.sha256(as_bytes).hexdigest()
        return {"beginning": written[:_BEGINNING_LENGTH], "bytes": len(as_bytes), "sha256": sha256}
    try:
        parsed = loads(written)
    except (ValueError, RecursionError):
        return written
    return parsed if _is_exact(parsed) else written


def _is_exact(value: object) -> bool:
    """RFC 8785, by which calls are approved, takes numbers for doubles."""
    if isinstance(value, Decimal):
        return False
    if isinstance(value, int):
        try:
            return Decimal(repr(float(value))) == value
        except OverflowError:
            return False
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    if isinstance(value, Mapping):
        return all(_is_exact(each) for each in cast(Mapping[str, object], value).values())
    if isinstance(value, list):
        return all(_is_exact(each) for each in cast(list[object], value))
    return True
