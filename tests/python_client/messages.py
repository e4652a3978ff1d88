"""Messages: how they are stored, read page by page, described and counted. `conversations.py` has the formats."""

import base64
import uuid
from hashlib import sha256
from types import SimpleNamespace
from urllib.request import urlopen

from acontext import AcontextClient, TextEvent
from acontext.messages import MessagePart, build_acontext_message
from acontext.types.session import Asset, Message
from acontext.uploads import FileUpload

from checks import check, pages, refused, same


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def session_of(client: AcontextClient, count: int) -> tuple[str, list[str]]:
    session = client.sessions.create().id
    return session, [client.sessions.store_message(session, blob=said(f"No. {n}")).id for n in range(count)]


@check("sessions.store_message: answers the message in the client's model")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    first = client.sessions.store_message(session, blob=said("Hello"), meta={"source": "web", "n": 2**60})
    same((first.session_id, first.parent_id, first.role), (session, None, "user"))
    same((first.meta, first.task_id), ({"source": "web", "n": 2**60}, None))
    same([(part.type, part.text) for part in first.parts], [("text", "Hello")])
    same(first.session_task_process_status, "pending")
    second = client.sessions.store_message(session, blob={"role": "assistant", "content": "Hi"})
    same((second.parent_id, second.role, second.meta), (first.id, "assistant", {}))
    assert first.created_at <= second.created_at


@check("sessions.store_message: where task tracking is off, the message says so")
def _(client: AcontextClient) -> None:
    session = client.sessions.create(disable_task_tracking=True).id
    message = client.sessions.store_message(session, blob=said("Hello"))
    same(message.session_task_process_status, "disable_tracking")


@check("sessions.store_message: a blob that is no message of its format is 400 and names the field")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    for message_format, blob, field in (
        ("openai", {"role": "nobody", "content": "x"}, "/role"),
        ("openai", {"role": "user", "content": 7}, "/content"),
        ("anthropic", {"role": "user", "content": [{"type": "text"}]}, "/content/0/text"),
        ("gemini", {"role": "user", "parts": "x"}, "/parts"),
        ("acontext", {"role": "user", "parts": [{"type": "telepathy"}]}, "/parts/0/type"),
    ):
        refusal = refused(
            400,
            "invalid_request",
            lambda: client.sessions.store_message(session, blob=blob, format=message_format),
        )
        assert field in str(refusal), f"{message_format}: {refusal}"
    same(client.sessions.get_messages(session).items, [])


@check("sessions.get_messages: the whole session without a limit, in both orders; ids and metas run in step")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    empty = client.sessions.get_messages(session)
    same((empty.items, empty.ids, empty.metas, empty.has_more), ([], [], [], False))
    same((empty.this_time_tokens, empty.events), (0, None))
    stored = [client.sessions.store_message(session, blob=said(str(n)), meta={"n": n}) for n in range(25)]
    read = client.sessions.get_messages(session)
    same(read.ids, [message.id for message in stored])
    same(read.items, [said(str(n)) for n in range(25)])
    same(read.metas, [{"n": n} for n in range(25)])
    same((read.has_more, bool(read.next_cursor)), (False, False))
    same(client.sessions.get_messages(session, time_desc=True), read)
    same(read.edit_at_message_id, read.ids[-1])
    whole = client.sessions.get_messages(session, format="acontext").items
    same([Message.model_validate(item) for item in whole], stored)


@check("sessions.get_messages: limit and cursor walk every message once, in both orders and every format")
def _(client: AcontextClient) -> None:
    session, ids = session_of(client, 5)

    def page_of(**query: object) -> object:
        return client.sessions.get_messages(session, **query)

    for message_format in ("openai", "anthropic", "gemini", "acontext"):
        for time_desc in (False, True):
            walk = list(pages(page_of, limit=2, time_desc=time_desc, format=message_format))
            same([len(page.ids) for page in walk], [2, 2, 1])
            in_order = walk[::-1] if time_desc else walk
            same([one for page in in_order for one in page.ids], ids)
            same([page.edit_at_message_id for page in walk], [page.ids[-1] for page in walk])
    cursor = page_of(limit=2).next_cursor
    refused(400, "invalid_cursor", lambda: page_of(cursor=cursor, time_desc=True))
    same(page_of(limit=0), page_of())
    for limit in (-1, 1_001):
        refused(400, "invalid_request", lambda: page_of(limit=limit))


@check("sessions.get_messages: with_events gives every event once, beside the messages that it lies among")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    events: list[str] = []
    for n in range(3):
        events.append(client.sessions.add_event(session, TextEvent(text=f"before {n}")).id)
        client.sessions.store_message(session, blob=said(str(n)))
    events.append(client.sessions.add_event(session, TextEvent(text="after")).id)

    def page_of(**query: object) -> object:
        return client.sessions.get_messages(session, with_events=True, **query)

    whole = page_of()
    same([event.id for event in whole.events], events)
    same(whole.events, client.sessions.get_events(session).items)
    same(client.sessions.get_messages(session, with_events=False).events, None)
    walk = list(pages(page_of, limit=1))
    same([event.id for page in walk for event in page.events], events)
    assert events[0] in [event.id for event in walk[0].events]
    back = list(pages(page_of, limit=2, time_desc=True))
    same([event.id for page in back[::-1] for event in page.events], events)


@check("sessions.get_messages: with_events of a session that has no message")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    event = client.sessions.add_event(session, TextEvent(text="alone"))
    read = client.sessions.get_messages(session, with_events=True)
    same((read.items, read.events), ([], [event]))


@check("sessions.get_messages: edit strategies clear and leave out, up to the pin, and change nothing that is stored")
def _(client: AcontextClient) -> None:
    session, ids = session_of(client, 4)
    arguments = '{"city":"Oslo"}'
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    store = client.sessions.store_message
    ids.append(store(session, blob={"role": "assistant", "content": None, "tool_calls": [call]}).id)
    result = {"role": "tool", "tool_call_id": "call_1", "content": "A long report about the weather in Oslo."}
    ids.append(store(session, blob=result).id)
    ids.append(store(session, blob=said("Thanks")).id)
    whole = client.sessions.get_messages(session, format="openai")
    cleared = client.sessions.get_messages(
        session,
        format="openai",
        edit_strategies=[
            {"type": "remove_tool_result", "params": {"keep_recent_n_tool_results": 0}},
            {"type": "remove_tool_call_params", "params": {"keep_recent_n_tool_calls": 0}},
        ],
    )
    same((cleared.ids, cleared.edit_at_message_id), (ids, ids[-1]))
    same(cleared.items[5]["content"], "Done")
    same(cleared.items[4]["tool_calls"][0]["function"]["arguments"], "{}")
    assert cleared.this_time_tokens < whole.this_time_tokens, cleared.this_time_tokens
    limit = [{"type": "token_limit", "params": {"limit_tokens": 1}}]
    pinned = client.sessions.get_messages(
        session, edit_strategies=limit, pin_editing_strategies_at_message=ids[1]
    )
    same((pinned.ids, pinned.edit_at_message_id), (ids[1:], ids[1]))
    same(client.sessions.get_messages(session, edit_strategies=limit).ids, ids[-1:])
    middle = [{"type": "middle_out", "params": {"token_reduce_to": whole.this_time_tokens - 1}}]
    same(len(client.sessions.get_messages(session, edit_strategies=middle).ids), len(ids) - 1)
    same(client.sessions.get_messages(session, format="openai").items, whole.items)


@check("sessions.get_messages: unknown edit strategies are 400 and name the parameter, never ignored")
def _(client: AcontextClient) -> None:
    session, _ids = session_of(client, 1)
    strategies = [{"type": "forget", "params": {}}]
    refusal = refused(
        400, "invalid_request", lambda: client.sessions.get_messages(session, edit_strategies=strategies)
    )
    assert "edit_strategies" in str(refusal), refusal


@check("sessions.store_message: a file is stored with its message, and read back with its bytes, also from its URL")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    content = bytes(range(256)) * 2_000
    blob = build_acontext_message(
        role="user", parts=["See the report.", MessagePart(type="file", file_field="doc", meta={"page": 3})]
    )
    file = FileUpload(filename="report.pdf", content=content, content_type="application/pdf")
    stored = client.sessions.store_message(session, blob=blob, format="acontext", file_field="doc", file=file)
    same([part.type for part in stored.parts], ["text", "file"])
    same(stored.parts[1].filename, "report.pdf")
    page = client.sessions.get_messages(session, format="acontext", with_asset_public_url=True)
    part = page.items[0]["parts"][1]
    meta = {"page": 3, "media_type": "application/pdf", "data": base64.b64encode(content).decode()}
    assert part["meta"] == meta
    asset = Asset.model_validate(part["asset"])
    same((asset.sha256, asset.mime, asset.size_b), (sha256(content).hexdigest(), "application/pdf", len(content)))
    with urlopen(page.public_urls[asset.sha256].url) as answer:
        assert answer.read() == content


@check("sessions.patch_message_meta: merges, None deletes a key, and get_messages shows it")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    message = client.sessions.store_message(session, blob=said("Hello"), meta={"a": 1, "b": {"c": 2}}).id
    patch = client.sessions.patch_message_meta
    same(patch(session, message, meta={"a": None, "d": "🙂"}), {"b": {"c": 2}, "d": "🙂"})
    same(patch(session, message, meta={}), {"b": {"c": 2}, "d": "🙂"})
    same(client.sessions.get_messages(session).metas, [{"b": {"c": 2}, "d": "🙂"}])
    refused(404, "message_not_found", lambda: patch(session, str(uuid.uuid4()), meta={}))
    event = client.sessions.add_event(session, TextEvent(text="no message")).id
    refused(404, "message_not_found", lambda: patch(session, event, meta={}))


@check("sessions.get_token_counts: what the pages' this_time_tokens add up to")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    same(client.sessions.get_token_counts(session).total_tokens, 0)
    client.sessions.store_message(session, blob=said("hello world"))
    same(client.sessions.get_token_counts(session).total_tokens, 2)  # of o200k_base
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at":"gate 7"}'}}
    client.sessions.store_message(session, blob={"role": "assistant", "content": None, "tool_calls": [call]})
    client.sessions.store_message(session, blob={"role": "tool", "tool_call_id": "c", "content": "It is open."})
    total = client.sessions.get_token_counts(session).total_tokens
    assert total > 2, total

    def page_of(**query: object) -> SimpleNamespace:
        return client.sessions.get_messages(session, **query)

    same(page_of().this_time_tokens, total)
    each = [page.this_time_tokens for page in pages(page_of, limit=1)]
    same((len(each), sum(each)), (3, total))
