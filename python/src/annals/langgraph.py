"""Checkpointers for LangGraph: `AnnalsSaver`, and `AsyncAnnalsSaver` for asyncio. They need `annals[langgraph]`."""

from ._async.langgraph_saver import AsyncAnnalsSaver
from ._sync.langgraph_saver import AnnalsSaver

__all__ = ["AnnalsSaver", "AsyncAnnalsSaver"]
