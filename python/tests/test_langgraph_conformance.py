"""LangGraph's own suite: 58 tests of what every checkpointer does, and 23 of what some do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.conformance import checkpointer_test, validate  # pyright: ignore[reportMissingTypeStubs]
from langgraph.checkpoint.conformance.report import ProgressCallbacks  # pyright: ignore[reportMissingTypeStubs]

from annals import Annals, AsyncAnnals
from annals.langgraph import AnnalsSaver, AsyncAnnalsSaver

from .service import Service


class Threaded(AnnalsSaver):
    """The sync saver as the suite calls it."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for each in self.list(config, filter=filter, before=before, limit=limit):
            yield each


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_the_conformance_suite_passes_whole(service: Service, kind: str) -> None:
    results: list[tuple[str, str, str | None]] = []

    @checkpointer_test(name=kind)
    async def saver() -> AsyncGenerator[AsyncAnnalsSaver | AnnalsSaver]:
        if kind == "async":
            async with AsyncAnnals(url=service.url, token=service.token) as annals:
                yield AsyncAnnalsSaver(annals)
        else:
            with Annals(url=service.url, token=service.token) as annals:
                yield Threaded(annals)

    progress = ProgressCallbacks(
        on_test_result=lambda capability, name, _, error: results.append((capability, name, error))
    )
    asyncio.run(validate(saver, progress=progress))
    extended = ("copy_thread", "delete_for_runs", "prune")
    assert [result for result in results if result[2]] == []
    assert sum(capability not in extended for capability, *_ in results) == 58
    assert sum(capability in extended for capability, *_ in results) == 23
