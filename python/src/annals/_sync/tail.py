from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx

from .._call import Call
from .._errors import AnnalsError, RenewalError, no_answer, timed_out
from .._event_stream import EventStreamParser, StreamEvent
from .._json import loads
from .._retry import outcome_of, pause_before
from .._waiting import Stream, sleep
from .transport import Transport


@dataclass(kw_only=True)
class Tail:
    """The events of a stream, such as entries of a log after `after`, and then each new one, across broken connections.

        connecting ──► reading ──► pausing ──► connecting …

    A new connection resumes after the last event that was returned, and is refused if that entry is another by now;
    nothing else is kept.
    """

    transport: Transport
    what: str = "The tail"
    """What error messages call it."""
    path: tuple[str, ...]
    query: dict[str, object]
    after: int
    position: str | None
    """The id of the last event: the last seq, and when that entry was stored, as the service writes it."""
    idle_timeout_s: float
    on_connect: Callable[[], object] | None
    on_disconnect: Callable[[AnnalsError], object] | None
    failures: int = 0
    """Connections in a row that received nothing."""
    unrenewed: int = 0
    """Attempts in a row to get another token that failed."""
    has_answered: bool = False
    retry_s: float | None = None
    """Seconds to pause, as the server asked."""

    def entries(self) -> Stream[Any]:
        seq = self.after
        with closing(self.events()) as events:
            for event in events:
                if event.id.isdigit() and int(event.id) > seq:
                    seq = int(event.id)
                    yield loads(event.data)

    def events(self) -> Stream[StreamEvent]:
        while True:
            try:
                with closing(self._read()) as events:
                    for event in events:
                        yield event
                lost = no_answer(self.what, "the server ended the stream")
            except httpx.TimeoutException:
                lost = timed_out(self.what, self.idle_timeout_s)
            except httpx.RequestError as error:
                lost = no_answer(self.what, error)
            except AnnalsError as error:
                lost = error
            self.failures += 1
            if isinstance(lost, RenewalError):
                self.unrenewed += 1
            elif lost.status == 401:
                self.unrenewed = 0
            # The transport has another token by now; if that is refused as well, nothing will help.
            is_renewed = lost.status == 401 and self.transport.renewal.is_possible and self.failures == 1
            passes = outcome_of(lost) != "final" or lost.status >= 500 or is_renewed
            tried = max(self.unrenewed, 0 if self.has_answered else self.failures)
            if not passes or tried > self.transport.limits.retries:
                raise lost
            if self.on_disconnect:
                self.on_disconnect(lost)
            sleep(pause_before(self.failures, lost, self.retry_s))

    def _read(self) -> Stream[StreamEvent]:
        """The events that one connection receives."""
        headers = {"accept": "text/event-stream"}
        if self.position:
            headers["last-event-id"] = self.position
        call = Call("GET", self.path, query=self.query, headers=headers)
        with self.transport.open(call, self.what, self.idle_timeout_s) as response:
            self.has_answered = True
            if self.on_connect:
                self.on_connect()
            parser = EventStreamParser()
            for piece in response.iter_bytes():
                self.failures = 0
                for event in parser.read(piece):
                    if event.type == "renew":
                        self.transport.renewal.renew(self.transport.requests.token)
                        self.unrenewed = 0
                        continue
                    self.position = event.id or self.position
                    yield event
                self.position = parser.last_id or self.position
                self.retry_s = self.retry_s if parser.retry_s is None else parser.retry_s
