from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals import Annals
from annals._json import dumps
from annals._storable import (
    BATCH_ENTRIES_MAX,
    UnstorableEntries,
    byte_length,
    cut_into_batches,
    cut_text,
    escape_json,
    idempotency_key,
    is_plain_json,
    stable_id,
    unescape_json,
    without_repeated_ids,
)
from annals._sync.keyed_session import append_to_keyed, read_event_data, split_large_event
from annals.types import NewEntry, NewEventEntry, NewSession

from .service import Service

TEXT = st.text(
    st.sampled_from(["a", "0", "\\", '"', "u", "\0", "\ud83d", "\ude00", "\ufdd0", "é", "\n"]) | st.characters()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)


def note(**more: Any) -> NewEntry:
    return cast(NewEntry, {"kind": "event", "type": "note", "data": {}, **more})


@given(JSON)
def test_what_is_escaped_can_be_stored_and_comes_back(value: Any) -> None:
    escaped = escape_json(value)
    text = dumps(escaped)
    assert "\\u0000" not in text.replace("\\\\", "")
    assert text.encode()
    assert unescape_json(escaped) == value
    assert is_plain_json(value)


def test_names_are_the_same_in_every_language() -> None:
    names = ("langgraph", 'é"\\\n\x01\x7f\u2028\ud800\U0001f600')
    assert stable_id(*names) == stable_id(*names[:1], names[1].replace("\U0001f600", "\ud83d\ude00"))
    assert stable_id(*names) == "3f9123c7-f97b-5bf0-af6a-81347aa1a69a"
    assert idempotency_key("a", "b") == "0473ef2dc0d324ab659d3580c1134e9d812035905c4781fdd6d529b0c6860e13"
    assert escape_json({"a\0": "\\u0000 \ud83d \ufdd0 \U0001f600"}) == {
        "a\ufdd00": "\\u0000 \ufdd0d83d \ufdd0\ufdd0 \U0001f600"
    }


@pytest.mark.parametrize("value", [(1,), {1}, b"", {1: 2}, float("nan"), [float("inf")], type("Text", (str,), {})("a")])
def test_what_json_would_change_is_not_plain(value: object) -> None:
    assert not is_plain_json({"a": [value]})


@given(st.lists(st.integers(0, 40)), st.integers(1, 60))
def test_batches_have_all_entries_in_order_and_fit(sizes: list[int], room: int) -> None:
    entries = [note(data={"text": "é" * size}) for size in sizes]
    body_bytes_max = 1024 + room + byte_length(note(data={"text": ""}))
    if any(2 * size + 1 > room for size in sizes):
        with pytest.raises(UnstorableEntries, match="ANNALS_BODY_BYTES_MAX"):
            cut_into_batches(entries, body_bytes_max)
    else:
        batches = cut_into_batches(entries, body_bytes_max)
        assert [entry for batch in batches for entry in batch] == entries
        assert all(byte_length(batch) <= body_bytes_max for batch in batches)


def test_a_batch_has_at_most_as_many_entries_as_a_request() -> None:
    batches = cut_into_batches([note()] * (BATCH_ENTRIES_MAX + 1))
    assert [len(batch) for batch in batches] == [BATCH_ENTRIES_MAX, 1]


def test_a_repeated_id_is_left_out_and_one_with_other_content_is_named() -> None:
    one = note(id="01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d")
    upper = "01931B0E-7D3C-7A52-9D3F-8A4C1F0E2B6D"
    assert without_repeated_ids([one, note(), note(id=upper)]) == [one, note()]
    with pytest.raises(UnstorableEntries, match="01931B0E"):
        without_repeated_ids([one, note(id=upper, data={"other": 1})])


@given(TEXT, st.integers(1, 40))
def test_a_text_is_cut_into_pieces_that_fit(text: str, bytes_max: int) -> None:
    pieces = cut_text(text, bytes_max)
    assert "".join(pieces) == text
    assert all(len(piece.encode(errors="surrogatepass")) <= max(bytes_max, 4) for piece in pieces)


def test_an_event_larger_than_a_body_is_stored_in_parts_and_once(service: Service) -> None:
    session: NewSession = {"use_uuid": stable_id("test", "large")}
    event: NewEventEntry = {
        "kind": "event",
        "type": "note",
        "id": stable_id("test", "event"),
        "data": {"text": '\0"\ufdd0\ud800\\é😀' * 80_000},
    }
    with Annals(url=service.url, token=service.token) as annals:
        for _ in range(2):
            append_to_keyed(annals, session, split_large_event(event), idempotency_key="k", keeps_stored=True)
        entries = [*annals.sessions.events(stable_id("test", "large"), limit=100)]
        [stored] = annals.sessions.timeline(stable_id("test", "large"), type="note")
        assert stored["kind"] == "event"
        assert read_event_data(annals, stored["session_id"], stored) == event["data"]
        assert [entry["type"] for entry in entries].count("note") == 1
        assert len({entry["id"] for entry in entries}) == len(entries) > 2


def test_the_first_content_of_an_id_stays(service: Service) -> None:
    session: NewSession = {"use_uuid": stable_id("test", "first")}
    ids = [stable_id("test", name) for name in "abc"]
    with Annals(url=service.url, token=service.token) as annals:
        for n, given_ids in enumerate((ids[:2], ids[1:], ids)):
            entries = [note(id=each, data={"n": n}) for each in given_ids]
            append_to_keyed(annals, session, entries, idempotency_key=f"{n}", keeps_stored=True)
        stored = [entry["data"]["n"] for entry in annals.sessions.events(stable_id("test", "first"))]
    assert stored == [0, 0, 1]
