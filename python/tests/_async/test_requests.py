"""What each method sends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from annals import AnnalsError, AsyncAnnals

from ..scripted_service import ScriptedService, ok, sent_json
from .methods import ID, METHODS, Method

pytestmark = pytest.mark.anyio

PAGE = ok({"items": [], "has_more": False, "next_cursor": ""})

Scripted = Callable[..., tuple[AsyncAnnals, ScriptedService]]

# What it answers for other clients of the same interface: it has no tasks, and `blobs.get` reads an asset.
FOR_OTHER_CLIENTS = [
    "GET /session/*/observing_status",
    "GET /session/*/task",
    "POST /session/*/flush",
    "GET /session/*/asset/download",
    "POST /otel/v1/traces",
    "POST /otel/v1/logs",
]

# Bytes, which test_service.py sends and reads.
NOT_JSON = [
    "GET /blobs/*",
    "PUT /blobs/*",
    "POST /agent_skills",
    "GET /agent_skills/*/download_zip",
    "GET /session/*/export",
]


@pytest.mark.parametrize(("line", "method", "body", "keyed"), METHODS)
async def test_a_method_sends_its_operation(
    scripted: Scripted, line: str, method: Method, body: object, keyed: bool
) -> None:
    annals, service = scripted(PAGE)
    await method(annals)
    [received] = service.received
    headers = received.request.headers
    assert received.line == line
    assert sent_json(received) == body
    assert headers["authorization"] == "Bearer sk-1"
    assert headers.get("content-type") == (None if body is None else "application/json")
    assert len(headers.get("idempotency-key", "")) == (32 if keyed else 0)


def test_every_operation_of_the_api_has_a_method() -> None:
    document = json.loads((Path(__file__).parents[3] / "openapi.json").read_text())
    sent = [line.partition("?")[0].replace(ID, "*").replace("ada", "*").replace("a%2Fb", "*") for line, *_ in METHODS]
    described = [
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for path, operations in document["paths"].items()
        for method in operations
        if path.startswith("/api/v1/")
    ]
    missing = [line for line in described if _without_names(line) not in (*sent, *FOR_OTHER_CLIENTS, *NOT_JSON)]
    assert missing == []


def _without_names(line: str) -> str:
    """`GET /session/{session_id}` as `GET /session/*`."""
    return "/".join("*" if segment.startswith("{") else segment for segment in line.split("/"))


async def test_parameters_have_the_apis_names_and_filters_are_sent_as_json(scripted: Scripted) -> None:
    annals, service = scripted(PAGE)
    sessions = annals.sessions.list(
        user="a&b", filter_by_configs={"agent": "x y", "n": 2**60}, time_desc=True, limit=7, cursor=None
    )
    await sessions.page("c+1")
    url = service.received[0].request.url
    assert dict(url.params) == {
        "user": "a&b",
        "filter_by_configs": '{"agent":"x y","n":1152921504606846976}',
        "time_desc": "true",
        "limit": "7",
        "cursor": "c+1",
    }


async def test_the_condition_the_fence_and_the_callers_key_are_sent_as_headers(scripted: Scripted) -> None:
    annals, service = scripted(ok(), ok())
    await annals.sessions.append(ID, type="a", data={}, if_match=0, fence=7, idempotency_key="mine")
    await annals.sessions.create(idempotency_key="mine too")
    assert service.headers("if-match") == ['"0"', None]
    assert service.headers("annals-fence") == ["7", None]
    assert service.headers("idempotency-key") == ["mine", "mine too"]


WRITES: list[tuple[str, Method]] = [
    ("append", lambda annals: annals.sessions.append(ID, type="a", data={}, fence=7)),
    ("append_message", lambda annals: annals.sessions.append_message(ID, blob={}, fence=7)),
    ("append_batch", lambda annals: annals.sessions.append_batch(ID, apply=[ID], fence=7)),
    ("retract", lambda annals: annals.sessions.retract(ID, last=1, fence=7)),
    ("compact", lambda annals: annals.sessions.compact(ID, to_seq=1, summary={"blob": {}}, fence=7)),
    ("patch_message_meta", lambda annals: annals.sessions.patch_message_meta(ID, ID, {}, fence=7)),
    ("configs.replace", lambda annals: annals.sessions.configs.replace(ID, {}, fence=7)),
    ("configs.merge", lambda annals: annals.sessions.configs.merge(ID, {}, fence=7)),
    ("request", lambda annals: annals.runs.request(ID, kind="approval", fence=7)),
    ("withdraw", lambda annals: annals.runs.withdraw(ID, ID, fence=7)),
    (
        "send",
        lambda annals: annals.runs.send(ID, {"mode": "queue", "kind": "event", "type": "a", "data": {}}, fence=7),
    ),
]


@pytest.mark.parametrize(("name", "write"), WRITES)
async def test_each_write_to_a_session_has_the_fence_that_the_caller_gives(
    scripted: Scripted, name: str, write: Method
) -> None:
    annals, service = scripted(ok())
    await write(annals)
    assert service.headers("annals-fence") == ["7"], name


@pytest.mark.parametrize("name", ["a/b", "ü 😀", "50%", "%2F", "a?b#c", "..x", "a\\b", "+", "'\"<>`{}|^"])
async def test_a_name_of_any_characters_is_one_segment_of_the_path(scripted: Scripted, name: str) -> None:
    annals, service = scripted(ok())
    await annals.users.resources(name)
    [received] = service.received
    assert received.request.url.path == f"/api/v1/user/{name}/resources"
    assert received.request.url.raw_path.count(b"/") == 5


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_no_path_can_carry_is_not_sent(scripted: Scripted, name: str) -> None:
    annals, service = scripted()
    with pytest.raises(AnnalsError) as caught:
        await annals.users.erase(name)
    assert (caught.value.status, caught.value.error, service.received) == (0, "invalid_request", [])


@pytest.mark.parametrize("key", ["two\nlines", "ü", "\x7f"])
async def test_a_key_that_no_header_can_carry_is_not_sent(scripted: Scripted, key: str) -> None:
    annals, service = scripted()
    with pytest.raises(AnnalsError, match="idempotency_key"):
        await annals.sessions.create(idempotency_key=key)
    assert service.received == []


async def test_a_value_that_json_cannot_hold_is_not_sent(scripted: Scripted) -> None:
    annals, service = scripted()
    for value in (float("nan"), float("inf"), object()):
        with pytest.raises((TypeError, ValueError)):
            await annals.sessions.append(ID, type="a", data={"value": value})
    assert service.received == []


@pytest.mark.parametrize("url", ["localhost:8029", "ftp://localhost", "http://", ""])
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        AsyncAnnals(url=url, token="sk-1")


@pytest.mark.parametrize("token", ["", "sk-\n1", "sk-ü"])
def test_an_invalid_token_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        AsyncAnnals(token=token)


async def test_a_url_may_have_a_path_and_end_with_slashes(scripted: Scripted) -> None:
    _, service = scripted(ok())
    http = httpx.AsyncClient(transport=service.transport)
    await AsyncAnnals(url="https://example.com/annals//", token="sk-1", http_client=http).ping()
    assert str(service.received[0].request.url) == "https://example.com/annals/api/v1/ping"
