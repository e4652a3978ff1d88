from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals._event_stream import EventStreamParser, StreamEvent

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12)
ids = st.text("0123456789", max_size=4)
events = st.lists(
    st.tuples(ids, st.sampled_from(["", "message", "event"]), st.lists(texts, min_size=1, max_size=3)), max_size=5
)


def read(stream: bytes, cuts: list[int]) -> list[StreamEvent]:
    """The events of a stream that arrives in chunks."""
    parser = EventStreamParser()
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in pairwise(places)]
    return [event for piece in pieces for event in parser.read(piece)]


@given(events, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 10_000), max_size=30))
def test_events_do_not_depend_on_the_chunks_they_arrive_in(
    written: list[tuple[str, str, list[str]]], line_end: str, cuts: list[int]
) -> None:
    lines: list[str] = []
    expected: list[tuple[str, str, str]] = []
    for event_id, event_type, data in written:
        lines += [":comment", f"id: {event_id}", f"event: {event_type}"]
        lines += [f"data: {text}" for text in data] + [""]
        expected.append((event_id, event_type or "message", "\n".join(data)))
    stream = "".join(f"{line}{line_end}" for line in lines).encode()
    assert read(stream, cuts) == expected


@pytest.mark.parametrize("end", ["", "\n", "\ndata: more", "\nid: 2"])
def test_an_incomplete_event_is_not_returned(end: str) -> None:
    assert read(f"id: 1\ndata: half{end}".encode(), []) == []


def test_fields_are_parsed_as_the_standard_says() -> None:
    stream = "\ufeffdata:one\ndata:  two\nid: 7\n\nid: a\0b\ndata\n\nevent: x\n\ndata: \u2028\x85\n\n"
    assert read(stream.encode(), []) == [
        ("7", "message", "one\n two"),
        ("7", "message", ""),
        ("7", "message", "\u2028\x85"),
    ]


def test_the_server_can_set_the_pause_before_reconnecting() -> None:
    parser = EventStreamParser()
    parser.read(b"retry: 1500\nretry: soon\nretry: -1\n")
    assert parser.retry_s == 1.5
