"""The four message formats that the client sends and reads, and the ways in which it sends them."""

import asyncio
import uuid
from typing import Any

from acontext import AcontextAsyncClient, AcontextClient, ClaudeAgentStorage, MessagePart, TextEvent
from acontext.errors import APIError
from acontext.messages import build_acontext_message
from anthropic.types import Message as AnthropicMessage
from openai.types.chat import ChatCompletionMessage

from checks import check, new_name, same, settings
from one_conversation import ARGUMENTS, CONVERSATIONS, SAID, said_in

PNG = "iVBORw0KGgo="


def register_conversation(written: str, blobs: list[dict[str, Any]]) -> None:
    @check(f"formats: {written} comes back as it was sent, and says the same in the other three")
    def _(client: AcontextClient) -> None:
        session = client.sessions.create().id
        stored = [client.sessions.store_message(session, blob=blob, format=written) for blob in blobs]
        same([message.role for message in stored], ["user", "assistant", "user", "assistant"])
        kinds = [[part.type for part in message.parts] for message in stored]
        same(kinds, [["text"], ["tool-call"], ["tool-result"], ["text"]])
        for read in CONVERSATIONS:
            answer = client.sessions.get_messages(session, format=read)
            if read == written:
                items = answer.items
                if read == "acontext":  # shown with all that the message has besides
                    items = [{key: item[key] for key in blob} for item, blob in zip(items, blobs, strict=True)]
                same(items, blobs)
            same(answer.ids, [message.id for message in stored])
            same(said_in(read, answer.items), SAID)


for _written, _blobs in CONVERSATIONS.items():
    register_conversation(_written, _blobs)


@check("formats: openai is the default, written and read")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    for blob in CONVERSATIONS["openai"]:
        client.sessions.store_message(session, blob=blob)
    same(client.sessions.get_messages(session).items, CONVERSATIONS["openai"])


@check("formats: a conversation written in all four by turns says the same in each")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    for n, written in enumerate(("gemini", "openai", "anthropic", "acontext")):
        client.sessions.store_message(session, blob=CONVERSATIONS[written][n], format=written)
    for read in CONVERSATIONS:
        same(said_in(read, client.sessions.get_messages(session, format=read).items), SAID)


@check("formats: answers of the OpenAI and Anthropic SDKs are stored as they are")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    usage = {"input_tokens": 1, "output_tokens": 2}
    answers = [
        ("openai", ChatCompletionMessage.model_validate(CONVERSATIONS["openai"][1])),
        (
            "anthropic",
            AnthropicMessage.model_validate(
                {
                    **CONVERSATIONS["anthropic"][1],
                    "id": "msg_1",
                    "type": "message",
                    "model": "a-model",
                    "stop_reason": "tool_use",
                    "stop_sequence": None,
                    "usage": usage,
                }
            ),
        ),
    ]
    for written, answer in answers:
        message = client.sessions.store_message(session, blob=answer, format=written)
        same([part.type for part in message.parts], ["tool-call"])
    for index, (written, answer) in enumerate(answers):
        read = client.sessions.get_messages(session, format=written)
        same(read.items[index], answer.model_dump())


@check("formats: build_acontext_message, with text, an image in place and one behind a URL")
def _(client: AcontextClient) -> None:
    session = client.sessions.create().id
    image = MessagePart(type="image", meta={"media_type": "image/png", "data": PNG})
    linked = MessagePart(type="image", meta={"url": "https://example.org/a.png"})
    blob = build_acontext_message(role="user", parts=["Look:", image, linked], meta={"name": "omar"})
    message = client.sessions.store_message(session, blob=blob, format="acontext")
    same([part.type for part in message.parts], ["text", "image", "image"])
    same([part.meta for part in message.parts][1:], [image.meta, linked.meta])
    items = {name: client.sessions.get_messages(session, format=name).items[0] for name in CONVERSATIONS}
    urls = [block["image_url"]["url"] for block in items["openai"]["content"][1:]]
    same(urls, [f"data:image/png;base64,{PNG}", "https://example.org/a.png"])
    sources = [block["source"]["type"] for block in items["anthropic"]["content"][1:]]
    same(sources, ["base64", "url"])
    same(items["gemini"]["parts"][1]["inlineData"], {"mimeType": "image/png", "data": PNG})
    same([part["type"] for part in items["acontext"]["parts"]], ["text", "image", "image"])


@check("async client: sessions, events, messages, users and spaces, and 404 route_not_found for the rest")
def _(client: AcontextClient) -> None:
    asyncio.run(walk_async_client())
    same(client.ping(), "pong")


async def walk_async_client() -> None:
    base_url, api_key = settings()
    async with AcontextAsyncClient(base_url=base_url, api_key=api_key) as client:
        user = new_name()
        session = await client.sessions.create(user=user, configs={"a": 1})
        same((await client.sessions.list(user=user, filter_by_configs={"a": 1})).items, [session])
        event = await client.sessions.add_event(session.id, TextEvent(text="one"))
        same((await client.sessions.get_events(session.id)).items, [event])
        await client.sessions.store_message(session.id, blob=CONVERSATIONS["gemini"][0], format="gemini")
        read = await client.sessions.get_messages(session.id, with_events=True)
        same((said_in("openai", read.items), read.events), (SAID[:1], [event]))
        space = await client.learning_spaces.create(user=user)
        same((await client.learning_spaces.list(user=user)).items, [space])
        same((await client.users.get_resources(user)).counts.sessions_count, 1)
        try:
            await client.disks.list()
        except APIError as refusal:
            same((refusal.status_code, refusal.error), (404, "route_not_found"))
        else:
            raise AssertionError("disks.list was answered")
        await client.users.delete(user)


@check("ClaudeAgentStorage: stores an agent's run under its own session id")
def _(client: AcontextClient) -> None:
    session = str(uuid.uuid4())
    errors: list[Exception] = []
    run = [
        {"subtype": "init", "data": {"session_id": session}},
        {"content": "Where is my flight?"},
        {
            "model": "a-model",
            "content": [
                {"thinking": "I look it up.", "signature": "c2ln"},
                {"id": "call_1", "name": "look_up", "input": ARGUMENTS},
            ],
        },
        {"content": [{"tool_use_id": "call_1", "content": "Gate 7 👍"}]},
        {"model": "a-model", "content": [{"text": "At gate 7."}]},
        {"subtype": "success", "session_id": session},
    ]
    asyncio.run(store_agent_run(run, errors))
    same(errors, [])
    read = client.sessions.get_messages(session, format="anthropic")
    thinking = read.items[1]["content"].pop(0)
    same(thinking, {"type": "thinking", "thinking": "I look it up.", "signature": "c2ln"})
    same(said_in("anthropic", read.items), SAID)
    same(read.metas[1], {"model": "a-model", "has_thinking": True})


async def store_agent_run(run: list[dict[str, Any]], errors: list[Exception]) -> None:
    base_url, api_key = settings()
    async with AcontextAsyncClient(base_url=base_url, api_key=api_key) as client:
        # Once more with a storage that does not know of the session yet: it exists, and that is no error.
        for messages in (run[:3], [run[0], *run[3:]]):
            storage = ClaudeAgentStorage(
                client, include_thinking=True, on_error=lambda error, _blob: errors.append(error)
            )
            for message in messages:
                await storage.save_message(message)
