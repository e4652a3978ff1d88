"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

# str.splitlines would also split at U+2028 and other characters.
_LINE_END = re.compile("\r\n|\n|\r")


class StreamEvent(NamedTuple):
    id: str
    """The stream's last id, sent with this event or before it."""
    type: str
    data: str


class EventStreamParser:
    """Parses a stream of events from chunks of any size.

    Between two calls it keeps an incomplete character, line or event. An event that the stream does not complete is
    never returned.
    """

    def __init__(self) -> None:
        self.retry_s: float | None = None
        """Seconds to wait before reconnecting, as the server asked."""
        self.last_id = ""
        """The last id of the events, and of blocks without data, that are complete."""
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._line: list[str] = []
        self._after_cr = False
        self._id = ""
        self._type = ""
        self._data: list[str] = []

    def read(self, received: bytes) -> list[StreamEvent]:
        """The events that this chunk completes."""
        text = self._decoder.decode(received)
        if not text:
            return []
        # The CR has already ended its line; its LF may come with the next chunk.
        if self._after_cr and text.startswith("\n"):
            text = text[1:]
        self._after_cr = text.endswith("\r")
        *lines, rest = _LINE_END.split(text)
        events: list[StreamEvent] = []
        for line in lines:
            self._line.append(line)
            self._end_line("".join(self._line), events)
            self._line.clear()
        if rest:
            self._line.append(rest)
        return events

    def _end_line(self, line: str, events: list[StreamEvent]) -> None:
        if line:
            self._field(line)
            return
        self.last_id = self._id
        if self._data:
            events.append(StreamEvent(self._id, self._type or "message", "\n".join(self._data)))
        self._type = ""
        self._data = []

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_s = int(value) / 1000
