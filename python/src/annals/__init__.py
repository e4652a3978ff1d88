"""The client of Annals, the session store for AI agents: `Annals`, and `AsyncAnnals` for asyncio."""

from ._async.annals import AsyncAnnals
from ._async.list import AsyncList
from ._errors import AnnalsError
from ._sync.annals import Annals
from ._sync.list import List

__all__ = ["Annals", "AnnalsError", "AsyncAnnals", "AsyncList", "List"]
