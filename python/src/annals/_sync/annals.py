from __future__ import annotations

from types import TracebackType

import httpx
from typing_extensions import Self, Unpack

from .._call import URL_DEFAULT, Call, Limits, RequestMaker
from .._waiting import Use
from ..types import (
    FoundEntry,
    FoundPage,
    FoundSessions,
    OwnKey,
    SearchQuery,
    ToolFailures,
    ToolPage,
    ToolQuery,
    ToolsQuery,
    Usage,
)
from .blobs import Blobs
from .keys import Keys, RedactionRules
from .learning_spaces import LearningSpaces
from .list import List
from .people import Members, PersonalTokens
from .runs import Runs
from .sessions import Sessions
from .skills import Skills
from .tokens import Tokens
from .transport import Renewal, Transport
from .users import Users
from .webhooks import Webhooks


class Annals:
    """One project of one Annals service.

    - `url`: the address of the service.
    - `token`: the project's API key, or a token that was made with one; it may be left out with `renew`.
    - `renew`: gets a token: the first one if none is given, and another when one expires. A call is then repeated with
      it, and a tail goes on where it was. If it raises, it is asked again, up to `retries` times.
    - `timeout_s`: the longest time for a whole call, including retries and pauses.
    - `attempt_timeout_s`: the longest time for one attempt of a call; by default a third of `timeout_s`, or all of it
      without retries.
    - `retries`: the most retries of a call.
    - `http_client`: an httpx client with settings of your own. You close it yourself.

    Raises ValueError if the url is invalid or the token is missing.
    """

    def __init__(
        self,
        *,
        url: str = URL_DEFAULT,
        token: str | None = None,
        renew: Use[str] | None = None,
        timeout_s: float = 30.0,
        attempt_timeout_s: float | None = None,
        retries: int = 5,
        http_client: httpx.Client | None = None,
    ) -> None:
        if not token and renew is None:
            raise ValueError("token is missing: pass the project's API key")
        requests = RequestMaker(url, token or None)
        self._owns_http = http_client is None
        # A tail holds a connection; with a limit, many tails would leave none for calls.
        http = http_client or httpx.Client(limits=httpx.Limits(max_connections=None, max_keepalive_connections=100))
        limits = Limits(timeout_s, attempt_timeout_s, retries)
        self._set_transport(Transport(requests, http, limits, Renewal(requests, renew)))

    def _set_transport(self, transport: Transport) -> None:
        self._transport = transport
        self.sessions = Sessions(transport)
        self.learning_spaces = LearningSpaces(transport)
        self.skills = Skills(transport)
        self.users = Users(transport)
        self.blobs = Blobs(transport)
        self.webhooks = Webhooks(transport)
        self.tokens = Tokens(transport)
        self.keys = Keys(transport)
        self.members = Members(transport)
        self.personal_tokens = PersonalTokens(transport)
        self.redaction = RedactionRules(transport)
        self.runs = Runs(transport)

    def with_options(
        self,
        *,
        timeout_s: float | None = None,
        attempt_timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Self:
        """A client with other limits that shares the connections of this one, and does not close them."""
        limits = self._transport.limits
        other = object.__new__(type(self))
        other._owns_http = False
        other._set_transport(
            self._transport.with_limits(
                Limits(
                    limits.timeout_s if timeout_s is None else timeout_s,
                    limits.attempt_timeout_s if attempt_timeout_s is None else attempt_timeout_s,
                    limits.retries if retries is None else retries,
                )
            )
        )
        return other

    def ping(self) -> None:
        """Returns if the service answers and accepts the token."""
        self._transport.call(Call("GET", ("ping",)))

    def key(self) -> OwnKey:
        """What the token may do."""
        return self._transport.call(Call("GET", ("key",)))

    def search(self, **query: Unpack[SearchQuery]) -> List[FoundEntry, FoundPage]:
        """Entries of all sessions that match `q`, the newest first.

        `q` is `words`, `"words in this order"`, `-without`, `begin*`. Raises AnnalsError with `search_off` until the
        project's operator switches search on.
        """
        return List(self._transport, ("search",), query)

    def recall(self, **query: Unpack[SearchQuery]) -> FoundSessions:
        """The sessions that answer the question `q` best, each with its best entries and those around them.

        Not all of its words need to be there, and other forms of them count. Raises AnnalsError with `search_off` until
        the project's operator switches search on.
        """
        asked = {**query, "mode": "recall", "group": "session"}
        return self._transport.call(Call("GET", ("search",), query=asked))

    def tools(self, **query: Unpack[ToolsQuery]) -> ToolPage:
        """The calls of tools in all sessions, counted by tool, those that failed most first."""
        return self._transport.call(Call("GET", ("tools",), query=query))

    def tool(self, name: str, **query: Unpack[ToolQuery]) -> ToolFailures:
        """One tool, with its failures by what their messages have in common."""
        return self._transport.call(Call("GET", ("tools", name), query=query))

    def usage(self, *, days: int | None = None) -> Usage:
        """What the project uses, its quotas, and what it stored by day. `days`: 30, to today."""
        return self._transport.call(Call("GET", ("usage",), query={"days": days}))

    def close(self) -> None:
        """Closes the connections. Calls in flight fail."""
        if self._owns_http:
            self._transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
