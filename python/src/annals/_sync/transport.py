from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import Any

import httpx

from .._call import Call, Limits, Prepared, RequestMaker, TimeLeft, data_of
from .._errors import AnnalsError, RenewalError, no_answer, refusal
from .._retry import outcome_of, pause_before
from .._waiting import Semaphore, Stream, Use, sleep

# More would keep Python busy with connections and not be faster; and waiting calls would use up their attempt's time.
CALLS_IN_FLIGHT_MAX = 32


class Renewal:
    """Replaces a token that has expired, or soon will: once for all who find that out."""

    def __init__(self, requests: RequestMaker, get: Use[str] | None) -> None:
        self._requests = requests
        self._get = get
        self._one_at_a_time = Semaphore(1)

    @property
    def is_possible(self) -> bool:
        return self._get is not None

    def renew(self, expired: str | None) -> None:
        if self._get is None:
            return
        with self._one_at_a_time:
            if self._requests.token != expired:
                return
            try:
                token = self._get()
            except AnnalsError:
                raise
            except Exception as error:
                raise RenewalError(error) from error
            self._requests.use(token)


class Transport:
    """Sends calls, with time limits and retries."""

    def __init__(
        self,
        requests: RequestMaker,
        http: httpx.Client,
        limits: Limits,
        renewal: Renewal,
        in_flight: Semaphore | None = None,
    ) -> None:
        self.limits = limits
        self.requests = requests
        self.http = http
        self.renewal = renewal
        self._in_flight = in_flight or Semaphore(CALLS_IN_FLIGHT_MAX)

    def with_limits(self, limits: Limits) -> Transport:
        """The same transport with other limits."""
        return Transport(self.requests, self.http, limits, self.renewal, self._in_flight)

    def call(self, call: Call, read: Callable[[Prepared, httpx.Response, bytes], Any] = data_of) -> Any:
        """Sends a call, retries it where that is safe and may help, and returns what `read` makes of the answer."""
        prepared = self.requests.prepare(call)
        deadline = monotonic() + self.limits.timeout_s
        in_doubt = False
        has_renewed = False
        token: str | None = None
        expired: str | None = None
        for attempt in count(1):
            try:
                self.renewal.renew(expired)
                token = self.requests.token
                with self._in_flight:
                    left = TimeLeft(prepared.what, self.limits, deadline)
                    return read(prepared, *self._attempt(prepared, left))
            except AnnalsError as error:
                if error.status == 401 and self.renewal.is_possible and not has_renewed:
                    has_renewed = True
                    expired = token
                    continue
                if in_doubt and error.error == call.done_when:
                    return None
                outcome = outcome_of(error)
                in_doubt = in_doubt or (outcome == "unknown" and not isinstance(error, RenewalError))
                if outcome == "final" or (call.once and in_doubt) or attempt > self.limits.retries:
                    raise
                pause_s = pause_before(attempt, error)
                # Waiting past the deadline would only delay the error.
                if monotonic() + pause_s >= deadline:
                    raise
            sleep(pause_s)
        raise AssertionError("attempts have no end")

    def _attempt(self, prepared: Prepared, left: TimeLeft) -> tuple[httpx.Response, bytes]:
        pieces: list[bytes] = []
        try:
            with self._send(prepared, left) as response:
                for piece in response.iter_bytes():
                    left.check()
                    pieces.append(piece)
        except httpx.TimeoutException as error:
            raise left.error() from error
        except httpx.RequestError as error:
            raise no_answer(prepared.what, error) from error
        return response, b"".join(pieces)

    @contextmanager
    def open(self, call: Call, what: str, idle_timeout_s: float) -> Stream[httpx.Response]:
        """Opens a stream of a type that the call accepts.

        `idle_timeout_s` is the longest silence before it counts as broken.
        """
        prepared = self.requests.prepare(call)
        self.renewal.renew(None)
        token = self.requests.token
        with self._send(prepared, httpx.Timeout(idle_timeout_s).as_dict()) as response:
            content_type = response.headers.get("content-type", "none").partition(";")[0]
            if not response.is_success or content_type not in prepared.headers["accept"].split(", "):
                response.read()
                if response.status_code == 401:
                    self.renewal.renew(token)
                raise refusal(what, response, response.text)
            yield response

    def _send(self, prepared: Prepared, timeouts: Mapping[str, float | None]):
        # Following a redirect would turn a POST into a GET and send the token to another server.
        return self.http.stream(
            prepared.method,
            prepared.url,
            headers={**prepared.headers, "authorization": f"Bearer {self.requests.token}"},
            content=prepared.content,
            follow_redirects=False,
            extensions={"timeout": timeouts},
        )
