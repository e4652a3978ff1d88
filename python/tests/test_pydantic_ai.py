"""A conversation store of Pydantic AI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.test import TestModel

from annals import AsyncAnnals
from annals.pydantic_ai import AnnalsConversationStore

from .service import KillableNode, Service, new_name

pytestmark = pytest.mark.anyio


@pytest.fixture
async def annals(service: Service) -> AsyncIterator[AsyncAnnals]:
    async with AsyncAnnals(url=service.url, token=service.new_project()) as annals:
        yield annals


@pytest.fixture(params=["memory", "annals"])
def store(request: pytest.FixtureRequest, annals: AsyncAnnals) -> ConversationStore:
    """The framework's own store says what is expected of ours."""
    return InMemoryConversationStore() if request.param == "memory" else AnnalsConversationStore(annals)


def turn(text: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(content=text)]), ModelResponse(parts=[TextPart(content=f"{text}!")])]


def said(conversation: Conversation | None) -> list[object]:
    assert conversation
    return [part.content for message in conversation.messages for part in message.parts if isinstance(part, TextPart)]


async def saved(store: ConversationStore, *texts: str, scope: str | None = None) -> Conversation:
    conversation = Conversation(conversation_id=new_name())
    for text in texts:
        conversation.messages.extend(turn(text))
        await store.save(conversation, scope=scope)
    return conversation


async def test_a_conversation_grows_by_what_is_new_and_is_read_as_it_was_saved(store: ConversationStore) -> None:
    assert await store.load(new_name()) is None
    conversation = await saved(store, "one", "two")
    loaded = await store.load(conversation.conversation_id)
    assert loaded
    assert loaded.messages == conversation.messages
    assert loaded.revision == conversation.revision
    loaded.messages.extend(turn("three"))
    added = await store.save(loaded)
    entries = await store.load_entries(loaded.conversation_id)
    assert entries
    assert [entry.id for entry in entries[-2:]] == [entry.id for entry in added]
    assert await store.read_entry(added[0].id) == added[0]
    assert said(await store.load(loaded.conversation_id, limit=3)) == ["two!", "three!"]
    assert await store.save(loaded) == []


async def test_a_save_on_what_somebody_else_has_changed_is_a_conflict(store: ConversationStore) -> None:
    conversation = await saved(store, "one")
    copies = [await store.load(conversation.conversation_id) for _ in range(8)]

    async def save(n: int, copy: Conversation | None) -> bool:
        assert copy
        copy.messages.extend(turn(f"{n}"))
        try:
            await store.save(copy)
        except ConversationConflict:
            return False
        return True

    assert sum(await asyncio.gather(*(save(n, copy) for n, copy in enumerate(copies)))) == 1
    assert len(said(await store.load(conversation.conversation_id))) == 2
    with pytest.raises(ConversationConflict):
        await store.save(Conversation(conversation_id=conversation.conversation_id))


async def test_a_conversation_branches_back_and_forth_and_forks_share_what_was_before(store: ConversationStore) -> None:
    conversation = await saved(store, "one", "two", scope="alice")
    name = conversation.conversation_id
    branch = await store.branch(name, at=2, expected_revision=conversation.revision)
    branch.messages.extend(turn("other"))
    await store.save(branch)
    assert said(await store.load(name)) == ["one!", "other!"]
    record = await store.read_record(name)
    assert record
    back = await store.branch(name, from_entry=record.branches[0], expected_revision=record.revision)
    assert said(back) == ["one!", "two!"]
    fork = await store.fork(name, at=2)
    fork.messages.extend(turn("forked"))
    await store.save(fork)
    await store.delete(name, scope="alice")
    assert await store.load(name) is None
    assert said(await store.load(fork.conversation_id)) == ["one!", "forked!"]
    again = await store.fork(fork.conversation_id)
    assert said(await store.load(again.conversation_id)) == ["one!", "forked!"]


async def test_scopes_keep_conversations_apart_and_the_last_saved_is_listed_first(store: ConversationStore) -> None:
    first = await saved(store, "a", scope="alice")
    second = await saved(store, "b", scope="alice")
    await saved(store, "c", scope="bob")
    first.messages.extend(turn("later"))
    await store.save(first)
    listed = await store.list_conversations(scope="alice")
    assert [each.conversation_id for each in listed] == [first.conversation_id, second.conversation_id]
    assert len(await store.list_conversations()) == 3
    assert len(await store.list_conversations(limit=1)) == 1
    assert await store.load(first.conversation_id, scope="bob") is None
    await store.delete(first.conversation_id, scope="bob")
    assert await store.load(first.conversation_id, scope="alice")
    with pytest.raises(ConversationConflict):
        await store.save(first, scope="bob")


async def test_a_deleted_conversation_is_gone_and_can_be_saved_anew(store: ConversationStore) -> None:
    conversation = await saved(store, "one")
    await store.delete(conversation.conversation_id)
    await store.delete(conversation.conversation_id)
    assert await store.load(conversation.conversation_id) is None
    with pytest.raises(ConversationConflict):
        await store.save(conversation)
    with pytest.raises(LookupError):
        await store.read_entry(new_name())
    await store.save(Conversation(conversation_id=conversation.conversation_id, messages=turn("anew")))
    assert said(await store.load(conversation.conversation_id)) == ["anew!"]


async def test_large_files_and_text_that_postgresql_cannot_hold_come_back(store: ConversationStore) -> None:
    image = BinaryContent(data=b"\0\xff" * 800_000, media_type="application/pdf")
    odd = "nul \0, half \ufdd0"
    conversation = Conversation(conversation_id=new_name(f"{odd} "))
    conversation.messages.extend([ModelRequest(parts=[UserPromptPart(content=[odd, image])]), *turn(odd)])
    await store.save(conversation, scope=odd)
    loaded = await store.load(conversation.conversation_id, scope=odd)
    assert loaded
    assert loaded.messages == conversation.messages


async def test_a_run_goes_on_in_another_process_and_reads_its_last_turns_with_few_requests(
    service: Service, annals: AsyncAnnals
) -> None:
    agent = Agent(TestModel(custom_output_text="Hello."))
    name = new_name()
    for n in range(3):
        store = AnnalsConversationStore(annals)
        conversation = await store.load(name) or Conversation(conversation_id=name)
        result = await agent.run(f"{n}", conversation=conversation)
        assert len(await store.save(result)) == 2
    sent: list[str] = []

    async def note(request: httpx.Request) -> None:
        sent.append(request.url.path.split("/")[-1])

    token = service.new_project()
    async with httpx.AsyncClient(event_hooks={"request": [note]}) as http:
        long = AnnalsConversationStore(AsyncAnnals(url=service.url, token=token, http_client=http))
        conversation = Conversation(
            conversation_id=name, messages=[message for n in range(600) for message in turn(f"{n}")]
        )
        await long.save(conversation)
        sent.clear()
        loaded = await long.load(name, limit=20)
    assert loaded
    assert loaded.messages == conversation.messages[-20:]
    assert len(sent) <= 4


async def test_a_conversation_loses_and_doubles_nothing_when_the_service_is_killed_in_the_middle(
    service: Service, killable: KillableNode
) -> None:
    async with AsyncAnnals(url=killable.url, token=service.new_project(), timeout_s=90, retries=200) as annals:
        store = AnnalsConversationStore(annals)
        conversation = await saved(store, "0")
        killed = asyncio.get_running_loop().run_in_executor(None, killable.kill)
        for n in range(1, 20):
            conversation.messages.extend(turn(f"{n}"))
            await store.save(conversation)
        await killed
        assert said(await store.load(conversation.conversation_id)) == [f"{n}!" for n in range(20)]
