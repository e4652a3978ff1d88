"""Every method against the real service."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import closing
from decimal import Decimal
from io import BytesIO
from uuid import uuid4
from zipfile import ZipFile

import pytest

from annals import Annals, AnnalsError
from annals._waiting import sleep, waited
from annals.types import NewEntry

from ..service import Service, bytes_at, new_name

pytestmark = pytest.mark.anyio

QUESTION = {"role": "user", "content": "Where is my flight?"}
ANSWER = {"role": "assistant", "content": "In the air."}


@pytest.fixture
def session_id(annals: Annals) -> str:
    return (annals.sessions.create())["id"]


def test_sessions_are_created_read_copied_and_deleted(annals: Annals) -> None:
    session = annals.sessions.create(user=new_name(), configs={"agent": "a"})
    assert annals.sessions.get(session["id"]) == session
    annals.sessions.append(session["id"], type="note", data={"n": 1})
    copied = annals.sessions.copy(session["id"])
    assert copied["old_session_id"] == session["id"]
    assert annals.sessions.delete(session["id"]) is None
    with pytest.raises(AnnalsError) as caught:
        annals.sessions.get(session["id"])
    assert (caught.value.status, caught.value.error) == (404, "session_not_found")
    assert caught.value.request_id
    events = [event for event in annals.sessions.events(copied["new_session_id"])]
    assert [(event["seq"], event["data"]) for event in events] == [(1, {"n": 1})]


def test_sessions_are_listed_with_every_filter(annals: Annals) -> None:
    user = new_name()
    ids = [(annals.sessions.create(user=user, configs={"n": n, "part": {"of": user}}))["id"] for n in range(7)]
    sessions = annals.sessions.list(user=user, limit=3)
    assert [session["id"] for session in sessions] == ids
    assert [len(page["items"]) for page in sessions.pages()] == [3, 3, 1]
    newest = annals.sessions.list(user=user, time_desc=True, limit=2)
    assert [session["id"] for session in newest] == ids[::-1]
    filtered = annals.sessions.list(filter_by_configs={"n": 4, "part": {"of": user}})
    assert [session["id"] for session in filtered] == [ids[4]]


def test_configs_are_replaced_and_merged(annals: Annals, session_id: str) -> None:
    annals.sessions.configs.replace(session_id, {"a": 1, "b": {"c": 2}})
    merged = annals.sessions.configs.merge(session_id, {"a": None, "d": 3})
    assert merged == {"configs": {"b": {"c": 2}, "d": 3}}
    assert (annals.sessions.configs.get(session_id))["configs"] == merged["configs"]


def test_a_log_takes_events_messages_and_batches_in_order(annals: Annals, session_id: str) -> None:
    event = annals.sessions.append(session_id, type="call", data={"name": "find"})
    assert (event["seq"], event["type"], event["data"]) == (1, "call", {"name": "find"})
    message = annals.sessions.append_message(session_id, blob=QUESTION, meta={"from": "web"})
    assert (message["seq"], message["role"], message["meta"]) == (2, "user", {"from": "web"})
    entries: list[NewEntry] = [
        {"kind": "message", "blob": ANSWER, "format": "openai"},
        {"kind": "event", "type": "end", "data": {}},
    ]
    batch = annals.sessions.append_batch(session_id, entries)
    timeline = [item for item in annals.sessions.timeline(session_id, limit=1)]
    assert [item["seq"] for item in timeline] == [1, 2, 3, 4]
    assert timeline[2:] == batch["items"]
    words = [item["type"] if item["kind"] == "event" else item["blob"]["content"] for item in timeline]
    assert words == ["call", "Where is my flight?", "In the air.", "end"]
    behind = annals.sessions.timeline(session_id, after_seq=1, kind="event")
    assert [item["seq"] for item in behind] == [4]
    assert [item["seq"] for item in annals.sessions.events(session_id, type="end")] == [4]


def test_messages_are_returned_in_every_format_with_their_metas(annals: Annals, session_id: str) -> None:
    annals.sessions.append(session_id, type="before", data={})
    for blob in (QUESTION, ANSWER):
        annals.sessions.append_message(session_id, blob=blob)
    assert [item for item in annals.sessions.messages(session_id, limit=1)] == [QUESTION, ANSWER]
    page = annals.sessions.messages(session_id, format="gemini", with_events=True).page()
    assert page["items"][0] == {"role": "user", "parts": [{"text": "Where is my flight?"}]}
    assert [event["type"] for event in page.get("events", [])] == ["before"]
    merged = annals.sessions.patch_message_meta(session_id, page["ids"][0], {"rating": 5, "none": None})
    assert merged == {"meta": {"rating": 5}}
    assert (annals.sessions.token_counts(session_id))["total_tokens"] == page["this_time_tokens"] > 0
    context = annals.sessions.context(session_id, max_tokens=1000)
    assert (context["items"], context["ids"]) == ([QUESTION, ANSWER], page["ids"])
    again = annals.sessions.context(session_id, max_tokens=1000, pin=context["pin"])
    assert again["items"] == context["items"]


def test_a_conditional_append_is_refused_if_the_log_has_grown(annals: Annals, session_id: str) -> None:
    annals.sessions.append(session_id, type="a", data={}, if_match=0)
    with pytest.raises(AnnalsError) as caught:
        annals.sessions.append_message(session_id, blob=QUESTION, if_match=0)
    assert (caught.value.status, caught.value.error) == (409, "seq_conflict")


def test_the_callers_own_key_makes_two_calls_store_once(annals: Annals, session_id: str) -> None:
    key = new_name("visible ~!")
    first = annals.sessions.append(session_id, type="a", data={}, idempotency_key=key)
    again = annals.sessions.append(session_id, type="a", data={}, idempotency_key=key)
    assert first == again
    with pytest.raises(AnnalsError, match="idempotency_key_reused"):
        annals.sessions.append(session_id, type="b", data={}, idempotency_key=key)


def test_numbers_and_texts_come_back_as_they_were_sent(annals: Annals, session_id: str) -> None:
    data = {
        "integers": [2**53 + 1, -(10**40), 0],
        "decimals": [Decimal("0.12345678901234567890"), Decimal("1E+400"), 0.1, 1.5e-9, -0.5],
        "texts": ["ü 😀 \u2028 \x7f", "1.50", ""],
        "nothing": None,
    }
    appended = annals.sessions.append(session_id, type="a", data=data)
    [read] = [event for event in annals.sessions.events(session_id)]
    with closing(annals.sessions.tail(session_id)) as tail:
        tailed = next(tail)
    assert tailed["kind"] == "event"
    assert appended["data"] == read["data"] == tailed["data"] == data


def test_the_error_names_the_place_of_what_cannot_be_stored(annals: Annals, session_id: str) -> None:
    for text in ("\0", "\ud800"):
        with pytest.raises(AnnalsError, match=r"invalid_request.*/data/a/0"):
            annals.sessions.append(session_id, type="a", data={"a": [text]})


def test_leaving_the_loop_of_a_tail_closes_its_connection(annals: Annals, session_id: str) -> None:
    annals.sessions.append(session_id, type="a", data={})
    for _ in annals.sessions.tail(session_id):
        assert (annals.usage())["tails"]["used"] > 0
        break
    deadline = time.monotonic() + 30
    while (annals.usage())["tails"]["used"] > 0:
        assert time.monotonic() < deadline


def test_learning_spaces_are_created_read_merged_listed_and_deleted(annals: Annals) -> None:
    user = new_name()
    space = annals.learning_spaces.create(user=user, meta={"topic": "refunds"})
    assert annals.learning_spaces.get(space["id"]) == space
    merged = annals.learning_spaces.merge(space["id"], {"topic": None, "reviewed": True})
    assert merged["meta"] == {"reviewed": True}
    listed = annals.learning_spaces.list(user=user, filter_by_meta={"reviewed": True})
    assert [each for each in listed] == [merged]
    annals.learning_spaces.delete(space["id"])
    with pytest.raises(AnnalsError, match="learning_space_not_found"):
        annals.learning_spaces.delete(space["id"])


def test_users_of_any_name_are_counted_listed_and_erased(annals: Annals) -> None:
    user = new_name("ü/%2F? 😀")
    annals.sessions.create(user=user)
    counts = (annals.users.resources(user))["counts"]
    assert (counts["sessions_count"], counts["learning_spaces_count"]) == (1, 0)
    assert user in [each["identifier"] for each in annals.users.list(limit=200)]
    erased = annals.users.erase(user)
    deleted = erased["deleted"]
    assert (deleted["sessions"], deleted["entries"], deleted["learning_spaces"]) == (1, 0, 0)
    with pytest.raises(AnnalsError, match="user_not_found"):
        annals.users.erase(user)


def test_ping_checks_the_token_key_tells_its_scopes_and_usage_returns_counts(annals: Annals, service: Service) -> None:
    assert annals.ping() is None
    assert (annals.key())["scopes"] == ["read", "write"]
    annals.sessions.create()
    usage = annals.usage()
    assert (usage["sessions"]["used"] >= 0, usage["sessions"]["max"]) == (True, None)
    assert usage["days"][0]["sessions"] > 0
    with Annals(url=service.url, token="sk-nobodys") as stranger:
        with pytest.raises(AnnalsError) as caught:
            stranger.ping()
    assert (caught.value.status, caught.value.error) == (401, "unauthorized")


def test_the_error_names_an_address_that_does_not_answer() -> None:
    with Annals(url="http://127.0.0.1:1", token="sk-1", retries=0) as nobody:
        with pytest.raises(AnnalsError, match=r"connection_failed: GET http://127\.0\.0\.1:1/"):
            nobody.ping()


def test_blobs_are_sent_and_read_whole_or_in_part(annals: Annals) -> None:
    content = new_name().encode() * 20_000
    blob = annals.blobs.put(content)
    assert blob["bytes"] == len(content)
    assert annals.blobs.put(content) == blob
    assert annals.blobs.get(blob["sha256"]) == content
    assert annals.blobs.get(blob["sha256"], start=5, stop=300_000) == content[5:300_000]
    with pytest.raises(AnnalsError) as caught:
        annals.blobs.get("0" * 64)
    assert caught.value.error == "blob_not_found"


def test_a_session_is_exported_piece_by_piece(annals: Annals, session_id: str) -> None:
    annals.sessions.append_message(session_id, blob={"role": "user", "content": "Hello"})
    content = b""
    for piece in annals.sessions.export(session_id, "openai"):
        content += piece
    assert json.loads(content)["messages"] == [{"role": "user", "content": "Hello"}]
    with pytest.raises(AnnalsError) as caught:
        for _ in annals.sessions.export(str(uuid4()), "jsonl"):
            pass
    assert caught.value.error == "session_not_found"


def test_a_message_has_files_which_have_urls_that_need_no_key(annals: Annals, session_id: str) -> None:
    report, photo = new_name().encode() * 20_000, new_name().encode()
    parts = [
        {"type": "text", "text": "Grüße"},
        {"type": "file", "file_field": "a"},
        {"type": "image", "file_field": "b"},
    ]
    message = annals.sessions.append_message(
        session_id,
        format="acontext",
        blob={"role": "user", "parts": parts},
        meta={"n": 2**60},
        files={"a": ("Bericht ü.pdf", report, "application/pdf"), "b": ("b.png", photo, "image/png")},
        if_match=0,
        idempotency_key=new_name(),
    )
    assert (message["seq"], message["role"], message["meta"]) == (1, "user", {"n": 2**60})
    page = annals.sessions.messages(session_id, format="acontext", with_asset_public_url=True).page()
    assert [part.get("filename") for part in page["items"][0]["parts"]] == [None, "Bericht ü.pdf", "b.png"]
    assert "public_urls" in page
    for content in (report, photo):
        sha256 = hashlib.sha256(content).hexdigest()
        assert annals.blobs.get(sha256) == content
        assert bytes_at(page["public_urls"][sha256]["url"]) == content
    with pytest.raises(AnnalsError) as caught:
        annals.sessions.append_message(
            session_id, format="acontext", blob={"role": "user", "parts": parts}, files={"a": ("a", b"", "text/plain")}
        )
    assert caught.value.error == "invalid_request"
    assert "/blob/parts/2/file_field" in str(caught.value)


def test_a_skill_is_uploaded_read_and_downloaded(annals: Annals) -> None:
    name = new_name().lower().replace("_", "-")
    out = BytesIO()
    with ZipFile(out, "w") as archive:
        archive.writestr("SKILL.md", f"---\nname: {name}\ndescription: A test.\n---\n")
    skill = annals.skills.create(out.getvalue(), user="ada", meta={"n": 2**60})
    assert (skill["name"], skill["meta"]) == (name, {"n": 2**60})
    assert (annals.skills.create(out.getvalue(), user="ada", meta={"n": 2**60}))["id"] == skill["id"]
    file = annals.skills.file(skill["id"], "SKILL.md")
    assert file["content"] is not None
    assert name in file["content"]["raw"]
    with ZipFile(BytesIO(annals.skills.download(skill["id"]))) as archive:
        assert archive.namelist() == ["SKILL.md"]
    annals.skills.delete(skill["id"])


def test_a_question_in_plain_words_is_answered_with_the_session_that_it_is_about(
    annals: Annals, service: Service
) -> None:
    with pytest.raises(AnnalsError, match="annals project set <name> --search on"):
        annals.recall(q="refund")
    with Annals(url=service.url, token=service.new_project(search=True)) as searching:
        session = searching.sessions.create()
        for text in ("Hello, this is Omar.", "I complained about my refunds."):
            blob = {"role": "user", "content": text}
            searching.sessions.append_message(session["id"], blob=blob, format="openai")
        deadline = time.monotonic() + 90
        while True:
            answer = searching.recall(q="Did anybody complain about a refund?", limit=3)
            if answer["items"] or time.monotonic() > deadline:
                break
            sleep(0.1)
        assert [(item["session_id"], item["title"]) for item in answer["items"]] == [
            (session["id"], "Hello, this is Omar.")
        ]
        assert [entry["seq"] for entry in answer["items"][0]["entries"]] == [2]
        assert answer.get("terms") == ["anybody", "complain", "refund"]


def test_a_run_is_followed_from_the_last_frame_that_was_seen(annals: Annals, session_id: str) -> None:
    sent = annals.runs.send(session_id, {"mode": "interrupt", "kind": "event", "type": "stop", "data": {}})
    annals.runs.take_lease(session_id, owner="a", ttl_ms=1_000)
    heard: list[tuple[str, str]] = []
    seen = 0
    with closing(annals.runs.follow(session_id)) as frames:
        for frame in frames:
            heard.append((frame["event"], frame["data"]["state"]))
            seen = frame["place"]
            if len(heard) == 3:
                break
    assert heard == [("input", "pending"), ("lease", "taken"), ("lease", "expired")]
    annals.runs.withdraw(session_id, sent["id"])
    with closing(annals.runs.follow(session_id, after=seen)) as frames:
        for frame in frames:
            if frame["event"] == "input":
                assert frame["data"]["state"] == "withdrawn"
                break


def test_a_lease_is_renewed_while_its_block_runs_and_tells_when_it_is_lost(annals: Annals, session_id: str) -> None:
    # A busy machine may be late by seconds, and a lease that is renewed too late is lost.
    with annals.runs.with_lease(session_id, owner="a", ttl_ms=9_000) as lease:
        first = annals.sessions.get(session_id)
        deadline = time.monotonic() + 60
        while (annals.sessions.get(session_id)).get("run") == first.get("run"):
            assert time.monotonic() < deadline
            sleep(0.1)
        with pytest.raises(AnnalsError) as caught:
            annals.runs.take_lease(session_id, owner="b", ttl_ms=1_000)
        assert caught.value.error == "leased"
        annals.sessions.append(session_id, type="note", data={}, fence=lease.fence)
        lease.check()
        taken = annals.runs.take_lease(session_id, owner="a", ttl_ms=60_000)
        assert waited(lease.lost, 20)
        with pytest.raises(AnnalsError) as caught:
            lease.check()
        assert caught.value.error == "fenced"
    annals.runs.release_lease(session_id, taken["fence"])
    with annals.runs.with_lease(session_id, owner="b", wait_ms=100, requires_fence=True):
        with pytest.raises(AnnalsError) as caught:
            annals.sessions.append(session_id, type="note", data={})
        assert caught.value.error == "fenced"
    annals.runs.take_lease(session_id, owner="c", ttl_ms=1_000)
