"""Calls of ADK's long-running tools, and those that need a confirmation, as requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from google.adk.events import Event
from google.genai import types

from ._approvals import WaitingCall, reason_of
from ._json import dumps
from ._storable import stable_id
from .types import RunnerRequest

_CONFIRMATION = "adk_request_confirmation"


class LongRunningCall(NamedTuple):
    """A call, and what a person is asked."""

    call: types.FunctionCall
    asked: WaitingCall


def unanswered(session_id: str, events: Sequence[Event]) -> list[LongRunningCall]:
    """The calls of a session that nobody has answered.

    An answer is a function response of the user; one that nothing follows was stored by a process that was killed
    then, and is given again.
    """
    answered = {
        response.id for event in events[:-1] if event.author == "user" for response in event.get_function_responses()
    }
    return [
        LongRunningCall(call, _asked_of(session_id, event, call))
        for event in events
        for call in event.get_function_calls()
        if call.id in (event.long_running_tool_ids or ()) and call.id not in answered
        # What it asks for is a credential or a text, and no approval.
        if call.name == _CONFIRMATION or not (call.name or "").startswith("adk_request_")
    ]


def answer_to(calls: Sequence[LongRunningCall], requests: Sequence[RunnerRequest]) -> types.Content:
    """The message that tells the agent what was decided."""
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=waiting.call.id, name=waiting.call.name, response=_response(waiting.call, request)
            )
        )
        for waiting, request in zip(calls, requests, strict=True)
    ]
    return types.Content(role="user", parts=parts)


def _response(call: types.FunctionCall, request: RunnerRequest) -> dict[str, Any]:
    is_approved = request.get("decision") == "approve"
    if call.name == _CONFIRMATION:
        return {"confirmed": is_approved}
    if not is_approved:
        return {"status": "denied", "reason": reason_of(request)}
    by = request.get("by")
    return {"status": "approved"} if by is None else {"status": "approved", "by": by}


def _asked_of(session_id: str, event: Event, call: types.FunctionCall) -> WaitingCall:
    args: dict[str, Any] = call.args or {}
    shown_id, name, hint = call.id, call.name, ""
    arguments: dict[str, Any] = args
    if call.name == _CONFIRMATION:
        original: dict[str, Any] = args.get("originalFunctionCall") or {}
        confirmation: dict[str, Any] = args.get("toolConfirmation") or {}
        shown_id, name, hint = original.get("id"), original.get("name"), confirmation.get("hint")
        arguments = original.get("args") or {}
    text = f"Call {shown_id} of {event.author}"
    return {
        "id": stable_id("adk", "approval", session_id, event.id, call.id or ""),
        "name": name or "",
        "arguments": dumps(arguments),
        "text": f"{text}: {hint}" if hint else text,
    }
