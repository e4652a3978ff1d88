from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from .._call import Call
from .._errors import AnnalsError
from .._waiting import AsyncStream
from ..types import Page
from .transport import AsyncTransport

Item = TypeVar("Item")
PageOfItems = TypeVar("PageOfItems", bound=Page[Any])


class AsyncList(Generic[Item, PageOfItems]):
    """A list of the API, read page by page as needed.

    Iterating returns the items of all pages, `pages()` returns the pages, `page()` a single one. Each use starts a
    new walk; nothing is requested before.
    """

    def __init__(self, transport: AsyncTransport, path: tuple[str, ...], query: Mapping[str, object]) -> None:
        self._transport = transport
        self._path = path
        self._query = query

    async def page(self, cursor: str | None = None) -> PageOfItems:
        """The page at `cursor`, the previous page's `next_cursor`; without it, the first page."""
        query = {**self._query, "cursor": cursor} if cursor else self._query
        return await self._transport.call(Call("GET", self._path, query=query))

    async def pages(self, cursor: str | None = None) -> AsyncStream[PageOfItems]:
        """All pages, from the one at `cursor` or the first."""
        page = await self.page(cursor)
        yield page
        while page["has_more"]:
            cursor = page["next_cursor"]
            page = await self.page(cursor)
            # A cursor that repeats would make the walk endless.
            if page["next_cursor"] == cursor:
                message = "The service returned the same cursor twice, so the list was not read further."
                raise AnnalsError(200, "unexpected_answer", message)
            yield page

    async def __aiter__(self) -> AsyncStream[Item]:
        async for page in self.pages():
            for item in page["items"]:
                yield item
