from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from .._call import Call
from .._errors import AnnalsError
from .._waiting import Stream
from ..types import Page
from .transport import Transport

Item = TypeVar("Item")
PageOfItems = TypeVar("PageOfItems", bound=Page[Any])


class List(Generic[Item, PageOfItems]):
    """A list that is read as far as it is used.

    Iterating gives every item of all pages, `pages()` every page, `page()` one. Nothing is asked for before, and
    each use begins anew.
    """

    def __init__(self, transport: Transport, path: tuple[str, ...], query: Mapping[str, object]) -> None:
        self._transport = transport
        self._path = path
        self._query = query

    def page(self, cursor: str | None = None) -> PageOfItems:
        """The page at `cursor`, the `next_cursor` of the page before it; without one, the first."""
        query = {**self._query, "cursor": cursor} if cursor else self._query
        return self._transport.call(Call("GET", self._path, query=query))

    def pages(self, cursor: str | None = None) -> Stream[PageOfItems]:
        """Every page, from the one at `cursor` or the first."""
        page = self.page(cursor)
        yield page
        while page["has_more"]:
            cursor = page["next_cursor"]
            page = self.page(cursor)
            # A walk that comes back to where it was would never end.
            if page["next_cursor"] == cursor:
                message = "The list came back to a page that it had given already, so it was not read further."
                raise AnnalsError(200, "unexpected_answer", message)
            yield page

    def __iter__(self) -> Stream[Item]:
        for page in self.pages():
            for item in page["items"]:
                yield item
