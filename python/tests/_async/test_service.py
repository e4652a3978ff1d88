"""Every method against the real service."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import aclosing
from decimal import Decimal
from io import BytesIO
from uuid import uuid4
from zipfile import ZipFile

import pytest

from annals import AnnalsError, AsyncAnnals
from annals._waiting import async_sleep, async_waited
from annals.types import NewEntry

from ..service import Service, bytes_at, new_name

pytestmark = pytest.mark.anyio

QUESTION = {"role": "user", "content": "Where is my flight?"}
ANSWER = {"role": "assistant", "content": "In the air."}


@pytest.fixture
async def session_id(annals: AsyncAnnals) -> str:
    return (await annals.sessions.create())["id"]


async def test_sessions_are_created_read_copied_and_deleted(annals: AsyncAnnals) -> None:
    session = await annals.sessions.create(user=new_name(), configs={"agent": "a"})
    assert await annals.sessions.get(session["id"]) == session
    await annals.sessions.append(session["id"], type="note", data={"n": 1})
    copied = await annals.sessions.copy(session["id"])
    assert copied["old_session_id"] == session["id"]
    assert await annals.sessions.delete(session["id"]) is None
    with pytest.raises(AnnalsError) as caught:
        await annals.sessions.get(session["id"])
    assert (caught.value.status, caught.value.error) == (404, "session_not_found")
    assert caught.value.request_id
    events = [event async for event in annals.sessions.events(copied["new_session_id"])]
    assert [(event["seq"], event["data"]) for event in events] == [(1, {"n": 1})]


async def test_sessions_are_listed_with_every_filter(annals: AsyncAnnals) -> None:
    user = new_name()
    ids = [(await annals.sessions.create(user=user, configs={"n": n, "part": {"of": user}}))["id"] for n in range(7)]
    sessions = annals.sessions.list(user=user, limit=3)
    assert [session["id"] async for session in sessions] == ids
    assert [len(page["items"]) async for page in sessions.pages()] == [3, 3, 1]
    newest = annals.sessions.list(user=user, time_desc=True, limit=2)
    assert [session["id"] async for session in newest] == ids[::-1]
    filtered = annals.sessions.list(filter_by_configs={"n": 4, "part": {"of": user}})
    assert [session["id"] async for session in filtered] == [ids[4]]


async def test_configs_are_replaced_and_merged(annals: AsyncAnnals, session_id: str) -> None:
    await annals.sessions.configs.replace(session_id, {"a": 1, "b": {"c": 2}})
    merged = await annals.sessions.configs.merge(session_id, {"a": None, "d": 3})
    assert merged == {"configs": {"b": {"c": 2}, "d": 3}}
    assert (await annals.sessions.configs.get(session_id))["configs"] == merged["configs"]


async def test_a_log_takes_events_messages_and_batches_in_order(annals: AsyncAnnals, session_id: str) -> None:
    event = await annals.sessions.append(session_id, type="call", data={"name": "find"})
    assert (event["seq"], event["type"], event["data"]) == (1, "call", {"name": "find"})
    message = await annals.sessions.append_message(session_id, blob=QUESTION, meta={"from": "web"})
    assert (message["seq"], message["role"], message["meta"]) == (2, "user", {"from": "web"})
    entries: list[NewEntry] = [
        {"kind": "message", "blob": ANSWER, "format": "openai"},
        {"kind": "event", "type": "end", "data": {}},
    ]
    batch = await annals.sessions.append_batch(session_id, entries)
    timeline = [item async for item in annals.sessions.timeline(session_id, limit=1)]
    assert [item["seq"] for item in timeline] == [1, 2, 3, 4]
    assert timeline[2:] == batch["items"]
    words = [item["type"] if item["kind"] == "event" else item["blob"]["content"] for item in timeline]
    assert words == ["call", "Where is my flight?", "In the air.", "end"]
    behind = annals.sessions.timeline(session_id, after_seq=1, kind="event")
    assert [item["seq"] async for item in behind] == [4]
    assert [item["seq"] async for item in annals.sessions.events(session_id, type="end")] == [4]


async def test_messages_are_returned_in_every_format_with_their_metas(annals: AsyncAnnals, session_id: str) -> None:
    await annals.sessions.append(session_id, type="before", data={})
    for blob in (QUESTION, ANSWER):
        await annals.sessions.append_message(session_id, blob=blob)
    assert [item async for item in annals.sessions.messages(session_id, limit=1)] == [QUESTION, ANSWER]
    page = await annals.sessions.messages(session_id, format="gemini", with_events=True).page()
    assert page["items"][0] == {"role": "user", "parts": [{"text": "Where is my flight?"}]}
    assert [event["type"] for event in page.get("events", [])] == ["before"]
    merged = await annals.sessions.patch_message_meta(session_id, page["ids"][0], {"rating": 5, "none": None})
    assert merged == {"meta": {"rating": 5}}
    assert (await annals.sessions.token_counts(session_id))["total_tokens"] == page["this_time_tokens"] > 0
    context = await annals.sessions.context(session_id, max_tokens=1000)
    assert (context["items"], context["ids"]) == ([QUESTION, ANSWER], page["ids"])
    again = await annals.sessions.context(session_id, max_tokens=1000, pin=context["pin"])
    assert again["items"] == context["items"]


async def test_a_conditional_append_is_refused_if_the_log_has_grown(annals: AsyncAnnals, session_id: str) -> None:
    await annals.sessions.append(session_id, type="a", data={}, if_match=0)
    with pytest.raises(AnnalsError) as caught:
        await annals.sessions.append_message(session_id, blob=QUESTION, if_match=0)
    assert (caught.value.status, caught.value.error) == (409, "seq_conflict")


async def test_the_callers_own_key_makes_two_calls_store_once(annals: AsyncAnnals, session_id: str) -> None:
    key = new_name("visible ~!")
    first = await annals.sessions.append(session_id, type="a", data={}, idempotency_key=key)
    again = await annals.sessions.append(session_id, type="a", data={}, idempotency_key=key)
    assert first == again
    with pytest.raises(AnnalsError, match="idempotency_key_reused"):
        await annals.sessions.append(session_id, type="b", data={}, idempotency_key=key)


async def test_numbers_and_texts_come_back_as_they_were_sent(annals: AsyncAnnals, session_id: str) -> None:
    data = {
        "integers": [2**53 + 1, -(10**40), 0],
        "decimals": [Decimal("0.12345678901234567890"), Decimal("1E+400"), 0.1, 1.5e-9, -0.5],
        "texts": ["ü 😀 \u2028 \x7f", "1.50", ""],
        "nothing": None,
    }
    appended = await annals.sessions.append(session_id, type="a", data=data)
    [read] = [event async for event in annals.sessions.events(session_id)]
    async with aclosing(annals.sessions.tail(session_id)) as tail:
        tailed = await anext(tail)
    assert tailed["kind"] == "event"
    assert appended["data"] == read["data"] == tailed["data"] == data


async def test_the_error_names_the_place_of_what_cannot_be_stored(annals: AsyncAnnals, session_id: str) -> None:
    for text in ("\0", "\ud800"):
        with pytest.raises(AnnalsError, match=r"invalid_request.*/data/a/0"):
            await annals.sessions.append(session_id, type="a", data={"a": [text]})


async def test_leaving_the_loop_of_a_tail_closes_its_connection(annals: AsyncAnnals, session_id: str) -> None:
    await annals.sessions.append(session_id, type="a", data={})
    async for _ in annals.sessions.tail(session_id):
        assert (await annals.usage())["tails"]["used"] > 0
        break
    deadline = time.monotonic() + 30
    while (await annals.usage())["tails"]["used"] > 0:
        assert time.monotonic() < deadline


async def test_learning_spaces_are_created_read_merged_listed_and_deleted(annals: AsyncAnnals) -> None:
    user = new_name()
    space = await annals.learning_spaces.create(user=user, meta={"topic": "refunds"})
    assert await annals.learning_spaces.get(space["id"]) == space
    merged = await annals.learning_spaces.merge(space["id"], {"topic": None, "reviewed": True})
    assert merged["meta"] == {"reviewed": True}
    listed = annals.learning_spaces.list(user=user, filter_by_meta={"reviewed": True})
    assert [each async for each in listed] == [merged]
    await annals.learning_spaces.delete(space["id"])
    with pytest.raises(AnnalsError, match="learning_space_not_found"):
        await annals.learning_spaces.delete(space["id"])


async def test_users_of_any_name_are_counted_listed_and_erased(annals: AsyncAnnals) -> None:
    user = new_name("ü/%2F? 😀")
    await annals.sessions.create(user=user)
    counts = (await annals.users.resources(user))["counts"]
    assert (counts["sessions_count"], counts["learning_spaces_count"]) == (1, 0)
    assert user in [each["identifier"] async for each in annals.users.list(limit=200)]
    erased = await annals.users.erase(user)
    deleted = erased["deleted"]
    assert (deleted["sessions"], deleted["entries"], deleted["learning_spaces"]) == (1, 0, 0)
    with pytest.raises(AnnalsError, match="user_not_found"):
        await annals.users.erase(user)


async def test_ping_checks_the_token_key_tells_its_scopes_and_usage_returns_counts(
    annals: AsyncAnnals, service: Service
) -> None:
    assert await annals.ping() is None
    assert (await annals.key())["scopes"] == ["read", "write"]
    await annals.sessions.create()
    usage = await annals.usage()
    assert (usage["sessions"]["used"] >= 0, usage["sessions"]["max"]) == (True, None)
    assert usage["days"][0]["sessions"] > 0
    async with AsyncAnnals(url=service.url, token="sk-nobodys") as stranger:
        with pytest.raises(AnnalsError) as caught:
            await stranger.ping()
    assert (caught.value.status, caught.value.error) == (401, "unauthorized")


async def test_the_error_names_an_address_that_does_not_answer() -> None:
    async with AsyncAnnals(url="http://127.0.0.1:1", token="sk-1", retries=0) as nobody:
        with pytest.raises(AnnalsError, match=r"connection_failed: GET http://127\.0\.0\.1:1/"):
            await nobody.ping()


async def test_blobs_are_sent_and_read_whole_or_in_part(annals: AsyncAnnals) -> None:
    content = new_name().encode() * 20_000
    blob = await annals.blobs.put(content)
    assert blob["bytes"] == len(content)
    assert await annals.blobs.put(content) == blob
    assert await annals.blobs.get(blob["sha256"]) == content
    assert await annals.blobs.get(blob["sha256"], start=5, stop=300_000) == content[5:300_000]
    with pytest.raises(AnnalsError) as caught:
        await annals.blobs.get("0" * 64)
    assert caught.value.error == "blob_not_found"


async def test_a_session_is_exported_piece_by_piece(annals: AsyncAnnals, session_id: str) -> None:
    await annals.sessions.append_message(session_id, blob={"role": "user", "content": "Hello"})
    content = b""
    async for piece in annals.sessions.export(session_id, "openai"):
        content += piece
    assert json.loads(content)["messages"] == [{"role": "user", "content": "Hello"}]
    with pytest.raises(AnnalsError) as caught:
        async for _ in annals.sessions.export(str(uuid4()), "jsonl"):
            pass
    assert caught.value.error == "session_not_found"


async def test_a_message_has_files_which_have_urls_that_need_no_key(annals: AsyncAnnals, session_id: str) -> None:
    report, photo = new_name().encode() * 20_000, new_name().encode()
    parts = [
        {"type": "text", "text": "Grüße"},
        {"type": "file", "file_field": "a"},
        {"type": "image", "file_field": "b"},
    ]
    message = await annals.sessions.append_message(
        session_id,
        format="acontext",
        blob={"role": "user", "parts": parts},
        meta={"n": 2**60},
        files={"a": ("Bericht ü.pdf", report, "application/pdf"), "b": ("b.png", photo, "image/png")},
        if_match=0,
        idempotency_key=new_name(),
    )
    assert (message["seq"], message["role"], message["meta"]) == (1, "user", {"n": 2**60})
    page = await annals.sessions.messages(session_id, format="acontext", with_asset_public_url=True).page()
    assert [part.get("filename") for part in page["items"][0]["parts"]] == [None, "Bericht ü.pdf", "b.png"]
    assert "public_urls" in page
    for content in (report, photo):
        sha256 = hashlib.sha256(content).hexdigest()
        assert await annals.blobs.get(sha256) == content
        assert bytes_at(page["public_urls"][sha256]["url"]) == content
    with pytest.raises(AnnalsError) as caught:
        await annals.sessions.append_message(
            session_id, format="acontext", blob={"role": "user", "parts": parts}, files={"a": ("a", b"", "text/plain")}
        )
    assert caught.value.error == "invalid_request"
    assert "/blob/parts/2/file_field" in str(caught.value)


async def test_a_skill_is_uploaded_read_and_downloaded(annals: AsyncAnnals) -> None:
    name = new_name().lower().replace("_", "-")
    out = BytesIO()
    with ZipFile(out, "w") as archive:
        archive.writestr("SKILL.md", f"---\nname: {name}\ndescription: A test.\n---\n")
    skill = await annals.skills.create(out.getvalue(), user="ada", meta={"n": 2**60})
    assert (skill["name"], skill["meta"]) == (name, {"n": 2**60})
    assert (await annals.skills.create(out.getvalue(), user="ada", meta={"n": 2**60}))["id"] == skill["id"]
    file = await annals.skills.file(skill["id"], "SKILL.md")
    assert file["content"] is not None
    assert name in file["content"]["raw"]
    with ZipFile(BytesIO(await annals.skills.download(skill["id"]))) as archive:
        assert archive.namelist() == ["SKILL.md"]
    await annals.skills.delete(skill["id"])


async def test_a_question_in_plain_words_is_answered_with_the_session_that_it_is_about(
    annals: AsyncAnnals, service: Service
) -> None:
    with pytest.raises(AnnalsError, match="annals project set <name> --search on"):
        await annals.recall(q="refund")
    async with AsyncAnnals(url=service.url, token=service.new_project(search=True)) as searching:
        session = await searching.sessions.create()
        for text in ("Hello, this is Omar.", "I complained about my refunds."):
            blob = {"role": "user", "content": text}
            await searching.sessions.append_message(session["id"], blob=blob, format="openai")
        deadline = time.monotonic() + 90
        while True:
            answer = await searching.recall(q="Did anybody complain about a refund?", limit=3)
            if answer["items"] or time.monotonic() > deadline:
                break
            await async_sleep(0.1)
        assert [(item["session_id"], item["title"]) for item in answer["items"]] == [
            (session["id"], "Hello, this is Omar.")
        ]
        assert [entry["seq"] for entry in answer["items"][0]["entries"]] == [2]
        assert answer.get("terms") == ["anybody", "complain", "refund"]


async def test_a_run_is_followed_from_the_last_frame_that_was_seen(annals: AsyncAnnals, session_id: str) -> None:
    sent = await annals.runs.send(session_id, {"mode": "interrupt", "kind": "event", "type": "stop", "data": {}})
    await annals.runs.take_lease(session_id, owner="a", ttl_ms=1_000)
    heard: list[tuple[str, str]] = []
    seen = 0
    async with aclosing(annals.runs.follow(session_id)) as frames:
        async for frame in frames:
            heard.append((frame["event"], frame["data"]["state"]))
            seen = frame["place"]
            if len(heard) == 3:
                break
    assert heard == [("input", "pending"), ("lease", "taken"), ("lease", "expired")]
    await annals.runs.withdraw(session_id, sent["id"])
    async with aclosing(annals.runs.follow(session_id, after=seen)) as frames:
        async for frame in frames:
            if frame["event"] == "input":
                assert frame["data"]["state"] == "withdrawn"
                break


async def test_a_lease_is_renewed_while_its_block_runs_and_tells_when_it_is_lost(
    annals: AsyncAnnals, session_id: str
) -> None:
    # A busy machine may be late by seconds, and a lease that is renewed too late is lost.
    async with annals.runs.with_lease(session_id, owner="a", ttl_ms=9_000) as lease:
        first = await annals.sessions.get(session_id)
        deadline = time.monotonic() + 60
        while (await annals.sessions.get(session_id)).get("run") == first.get("run"):
            assert time.monotonic() < deadline
            await async_sleep(0.1)
        with pytest.raises(AnnalsError) as caught:
            await annals.runs.take_lease(session_id, owner="b", ttl_ms=1_000)
        assert caught.value.error == "leased"
        await annals.sessions.append(session_id, type="note", data={}, fence=lease.fence)
        lease.check()
        taken = await annals.runs.take_lease(session_id, owner="a", ttl_ms=60_000)
        assert await async_waited(lease.lost, 20)
        with pytest.raises(AnnalsError) as caught:
            lease.check()
        assert caught.value.error == "fenced"
    await annals.runs.release_lease(session_id, taken["fence"])
    async with annals.runs.with_lease(session_id, owner="b", wait_ms=100, requires_fence=True):
        with pytest.raises(AnnalsError) as caught:
            await annals.sessions.append(session_id, type="note", data={})
        assert caught.value.error == "fenced"
    await annals.runs.take_lease(session_id, owner="c", ttl_ms=1_000)
