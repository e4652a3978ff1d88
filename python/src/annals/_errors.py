"""The error that the clients raise, and its three causes: a refusal, no answer, a call that cannot be sent."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx


class AnnalsError(Exception):
    """Every failure of a call.

    A refusal has the error name and message of the service. If there was no answer, `status` is 0 and `error` is
    one of

    - `connection_failed`: no connection, or one that broke before the answer was complete;
    - `timeout`: no answer in time;
    - `invalid_request`: the call cannot be sent at all.

    `unexpected_answer` means that something other than Annals answered: a proxy's page, a redirect.
    """

    status: int
    """The HTTP status; 0 if there was no answer."""
    error: str
    """A stable name to program against, such as `session_not_found`."""
    message: str
    """One sentence for people."""
    request_id: str | None
    """Identifies the request in the server's log."""
    retry_after_s: float | None
    """Seconds to wait before a retry, as the server asked."""

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(status, error, message, request_id, retry_after_s)
        self.status = status
        self.error = error
        self.message = message
        self.request_id = request_id
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.error}: {self.message}"


class RenewalError(AnnalsError):
    """The client's `renew` raised something else than an `AnnalsError`, which is the cause."""

    def __init__(self, reason: Exception) -> None:
        shown = str(reason) or type(reason).__name__
        super().__init__(0, "connection_failed", f"The token could not be renewed: {shown.rstrip('.')}.")


def refusal(what: str, response: httpx.Response, text: str) -> AnnalsError:
    """The error for an answer that is not a success. `what` names the call in the message."""
    status = response.status_code
    request_id = response.headers.get("x-request-id")
    retry_after_s = _read_retry_after(response.headers.get("retry-after"))
    envelope = _read_envelope(text)
    if envelope is not None:
        error, message = envelope
        return AnnalsError(status, error, message, request_id, retry_after_s)
    start = text.strip()[:120]
    shown = f": {start}" if start else ""
    message = f"{what} was answered {status} by something that is not Annals{shown}. Check the URL."
    return AnnalsError(status, "unexpected_answer", message, request_id, retry_after_s)


def no_answer(what: str, reason: object) -> AnnalsError:
    """The error for an attempt without an answer."""
    shown = str(reason) or type(reason).__name__
    message = f"{what} got no complete answer: {shown.rstrip('.')}. Is Annals running there?"
    return AnnalsError(0, "connection_failed", message)


def timed_out(what: str, seconds: float) -> AnnalsError:
    """The error for an attempt, or a whole call, that took too long."""
    return AnnalsError(0, "timeout", f"{what} got no answer within {seconds:g} s.")


def cannot_be_sent(reason: str) -> AnnalsError:
    """The error for a call that fits no HTTP request."""
    return AnnalsError(0, "invalid_request", f"{reason}, so nothing was sent.")


def _read_envelope(text: str) -> tuple[str, str] | None:
    try:
        answer: Any = json.loads(text)
        error, message = answer["error"], answer["msg"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return (error, message) if isinstance(error, str) and error and isinstance(message, str) else None


def _read_retry_after(header: str | None) -> float | None:
    """Seconds, from either form that HTTP allows: a number or a date."""
    if header is None:
        return None
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())
