"""One operation of the API, and the request that it becomes: what both clients share, without any I/O."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from time import monotonic
from typing import Any, Literal
from urllib.parse import quote, urlencode

import httpx

from ._errors import AnnalsError, cannot_be_sent, refusal, timed_out
from ._json import dumps, encode, loads

URL_DEFAULT = "http://127.0.0.1:8029"
_STEPS = ("connect", "pool", "write", "read")
# Zero would mean: do not wait at all.
_STEP_S_MIN = 0.001


@dataclass(frozen=True)
class Call:
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: tuple[str, ...]
    """The segments of the path, not encoded."""
    _: KW_ONLY
    query: Mapping[str, object] | None = None
    body: Mapping[str, object] | None = None
    keyed: bool = False
    """The operation takes an Idempotency-Key; so every call gets one, the same for all its attempts."""
    idempotency_key: str | None = None
    """The caller's own key, instead of one that is made up."""
    if_match: int | None = None
    once: bool = False
    """Not to be made again when nobody knows whether it was done."""
    done_when: str | None = None
    """The error that, after an attempt of unknown outcome, shows that this attempt did it."""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Prepared:
    """A call as it is sent, the same to the byte in every attempt."""

    what: str
    """What errors call it."""
    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None


@dataclass(frozen=True)
class Limits:
    timeout_s: float
    """How long a call may take in all, retries and pauses included."""
    attempt_timeout_s: float | None
    """How long one attempt may take; None: a third of `timeout_s`, or all of it where there are no retries."""
    retries: int
    """How often a call is made again at most."""

    @property
    def attempt_s(self) -> float:
        if self.attempt_timeout_s is not None:
            return self.attempt_timeout_s
        return self.timeout_s / 3 if self.retries > 0 else self.timeout_s


class TimeLeft(Mapping[str, float]):
    """The time that an attempt has left, in the form of httpx's timeouts, which it looks up at each step.

    httpx limits each step for itself: connecting, sending, and each piece of the answer. So each gets what the
    steps before it have left.
    """

    def __init__(self, what: str, limits: Limits, deadline: float) -> None:
        self._what = what
        self._until = min(monotonic() + limits.attempt_s, deadline)
        self._limit_s = limits.attempt_s if self._until < deadline else limits.timeout_s

    def __getitem__(self, step: str) -> float:
        if step not in _STEPS:
            raise KeyError(step)
        return max(self._until - monotonic(), _STEP_S_MIN)

    def __iter__(self) -> Iterator[str]:
        return iter(_STEPS)

    def __len__(self) -> int:
        return len(_STEPS)

    def check(self) -> None:
        if monotonic() > self._until:
            raise self.error()

    def error(self) -> AnnalsError:
        return timed_out(self._what, self._limit_s)


class RequestMaker:
    """Knows the address and the token."""

    def __init__(self, url: str, token: str) -> None:
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ValueError(f"url is not a URL: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ValueError("url must begin with http:// or https:// and name a host")
        if not token:
            raise ValueError("token is missing: give the project's API key")
        if not _fits_header(token):
            raise ValueError("token has characters that no API key has")
        self._url = f"{url.rstrip('/')}/api/v1"
        self._token = token

    def prepare(self, call: Call) -> Prepared:
        headers = {"accept": "application/json", "authorization": f"Bearer {self._token}"}
        if call.keyed:
            key = secrets.token_hex(16) if call.idempotency_key is None else call.idempotency_key
            if not _fits_header(key):
                raise cannot_be_sent("idempotency_key must be visible ASCII characters")
            headers["idempotency-key"] = key
        if call.if_match is not None:
            headers["if-match"] = f'"{call.if_match}"'
        content = None
        if call.body is not None:
            headers["content-type"] = "application/json"
            content = encode({name.removesuffix("_"): value for name, value in call.body.items()})
        headers.update(call.headers or {})
        address = self._url + "".join(f"/{_segment(segment)}" for segment in call.path)
        url = f"{address}{_query_string(call.query)}"
        return Prepared(f"{call.method} {address}", call.method, url, headers, content)


def data_of(prepared: Prepared, response: httpx.Response, body: bytes) -> Any:
    """The `data` of an answer's envelope; AnnalsError for a refusal, and for what is not an envelope."""
    text = body.decode(errors="replace")
    if response.is_success:
        try:
            return loads(text)["data"]
        except (ValueError, LookupError, TypeError):
            pass
    raise refusal(prepared.what, response, text)


def _segment(text: str) -> str:
    # An empty one would name another resource, and the dots are resolved away before a request is sent.
    if text in ("", ".", ".."):
        raise cannot_be_sent(f'"{text}" cannot stand in the path of a URL')
    return quote(text, safe="")


def _query_string(query: Mapping[str, object] | None) -> str:
    """What is None is left out, objects go as JSON."""
    given = {
        name.removesuffix("_"): value if isinstance(value, str) else dumps(value)
        for name, value in (query or {}).items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


def _fits_header(text: str) -> bool:
    return text.isascii() and text.isprintable()
