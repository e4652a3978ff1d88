"""An operation of the API and the request for it: what both clients share, without I/O."""

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
# Zero would mean not to wait at all.
_STEP_S_MIN = 0.001


@dataclass(frozen=True)
class Call:
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: tuple[str, ...]
    """The segments of the path, not encoded."""
    _: KW_ONLY
    query: Mapping[str, object] | None = None
    body: Mapping[str, object] | None = None
    content: bytes | None = None
    """A body that is not JSON."""
    keyed: bool = False
    """The operation takes an Idempotency-Key, so each call sends one, the same in all its attempts."""
    idempotency_key: str | None = None
    """The caller's own key; None: a random one."""
    if_match: int | None = None
    fence: int | None = None
    """Refuse the write unless the session's lease has this fence."""
    once: bool = False
    """Do not retry it after an attempt of unknown outcome."""
    done_when: str | None = None
    """The error that means success if it follows an attempt of unknown outcome."""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Prepared:
    """A request, the same to the byte in every attempt."""

    what: str
    """What error messages call it."""
    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None


@dataclass(frozen=True)
class Limits:
    timeout_s: float
    """The longest time for a whole call, including retries and pauses."""
    attempt_timeout_s: float | None
    """The longest time for one attempt; None: a third of `timeout_s`, or all of it without retries."""
    retries: int
    """The most retries of a call."""

    @property
    def attempt_s(self) -> float:
        if self.attempt_timeout_s is not None:
            return self.attempt_timeout_s
        return self.timeout_s / 3 if self.retries > 0 else self.timeout_s


class TimeLeft(Mapping[str, float]):
    """The time left for an attempt, as the mapping of timeouts that httpx reads at each step.

    httpx limits each step separately: connecting, sending, each chunk of the answer. This gives each step the time
    that the previous ones left.
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
    """Makes requests to one service with one token."""

    def __init__(self, url: str, token: str | None) -> None:
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ValueError(f"url is not a URL: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ValueError("url must begin with http:// or https:// and name a host")
        self._url = f"{url.rstrip('/')}/api/v1"
        self.token = token
        if token is not None:
            self.use(token)

    def use(self, token: str) -> None:
        if not token:
            raise ValueError("token is missing: pass the project's API key")
        if not _fits_header(token):
            raise ValueError("token has characters that no API key has")
        self.token = token

    def prepare(self, call: Call) -> Prepared:
        headers = {"accept": "application/json"}
        if call.keyed:
            key = secrets.token_hex(16) if call.idempotency_key is None else call.idempotency_key
            if not _fits_header(key):
                raise cannot_be_sent("idempotency_key must be visible ASCII characters")
            headers["idempotency-key"] = key
        if call.if_match is not None:
            headers["if-match"] = f'"{call.if_match}"'
        if call.fence is not None:
            headers["annals-fence"] = str(call.fence)
        content = call.content
        if content is not None:
            headers["content-type"] = "application/octet-stream"
        if call.body is not None:
            headers["content-type"] = "application/json"
            content = encode({name.removesuffix("_"): value for name, value in call.body.items()})
        headers.update(call.headers or {})
        address = self._url + "".join(f"/{_segment(segment)}" for segment in call.path)
        url = f"{address}{_query_string(call.query)}"
        return Prepared(f"{call.method} {address}", call.method, url, headers, content)


File = tuple[str, bytes, str]
"""A file's name, its bytes and its media type."""


def form_of(
    fields: Mapping[str, str | Mapping[str, object] | None], files: Mapping[str, File]
) -> tuple[bytes, dict[str, str]]:
    """A form with files and fields beside them, and the header that says how it is made. Objects are sent as JSON."""
    form = httpx.Request(
        "POST",
        URL_DEFAULT,
        data={
            name: value if isinstance(value, str) else encode(dict(value)).decode()
            for name, value in fields.items()
            if value is not None
        },
        files=files,
    )
    return form.read(), {"content-type": form.headers["content-type"]}


def bytes_of(prepared: Prepared, response: httpx.Response, body: bytes) -> bytes:
    """The bytes of an answer. Raises AnnalsError for a refusal."""
    if response.is_success:
        return body
    raise refusal(prepared.what, response, body.decode(errors="replace"))


def data_of(prepared: Prepared, response: httpx.Response, body: bytes) -> Any:
    """The `data` of an answer's envelope. Raises AnnalsError for a refusal, or if there is no envelope."""
    text = body.decode(errors="replace")
    if response.is_success:
        try:
            data = loads(text)["data"]
            if data is not None:
                return data
        except (ValueError, LookupError, TypeError):
            pass
    raise refusal(prepared.what, response, text)


def _segment(text: str) -> str:
    # An empty segment would name another resource; dot segments are removed before a request is sent.
    if text in ("", ".", ".."):
        raise cannot_be_sent(f'"{text}" cannot stand in the path of a URL')
    return quote(text, safe="")


def _query_string(query: Mapping[str, object] | None) -> str:
    """Leaves out None, and sends objects as JSON."""
    given = {
        name.removesuffix("_"): value if isinstance(value, str) else dumps(value)
        for name, value in (query or {}).items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


def _fits_header(text: str) -> bool:
    return text.isascii() and text.isprintable()
