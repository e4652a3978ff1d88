from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal, TypedDict, cast
from uuid import uuid4

from typing_extensions import Unpack

from .._call import Call
from .._errors import AnnalsError
from .._json import loads
from .._retry import outcome_of
from .._waiting import AsyncBeside, AsyncEvent, AsyncStream, async_waited
from ..types import (
    AddedInput,
    ClaimedSession,
    InboxInput,
    InboxQuery,
    Lease,
    NewInput,
    NewLease,
    NewRequest,
    Page,
    RequestsQuery,
    Resolution,
    ResolutionOf,
    RunItem,
    RunnerRequest,
    RunsQuery,
    WorkQuery,
)
from .list import AsyncList
from .tail import AsyncTail
from .transport import AsyncTransport

# Beyond the wait that a call asks for.
_ANSWER_S = 10.0


_TTL_MS_DEFAULT = 30_000
# Of the time of a lease: after how much it is renewed, how long a try may take, and the pause after one that failed.
_RENEWED_AFTER = 1 / 3
_TRIED_FOR = 1 / 4
_PAUSE = 1 / 12


class RunFrame(TypedDict):
    """A change of a run, at a place."""

    place: int
    event: Literal["input", "lease", "request"]
    data: dict[str, Any]


@dataclass
class AsyncHeldLease:
    """A lease that is held. `lost` is set when it no longer is, and `reason` says why: stop then."""

    session_id: str
    fence: int
    owner: str
    lost: AsyncEvent = field(default_factory=AsyncEvent)
    reason: AnnalsError | None = None

    def check(self) -> None:
        """Raises the reason if the lease is lost."""
        if self.reason is not None:
            raise self.reason


class AsyncRuns:
    """Who works on sessions, what they are sent, and what they ask."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, **query: Unpack[RunsQuery]) -> AsyncList[RunItem, Page[RunItem]]:
        """The sessions in a state of their run, the latest first."""
        return AsyncList(self._transport, ("runs",), query)

    async def take_lease(self, session_id: str, **lease: Unpack[NewLease]) -> Lease:
        """Takes a session's lease. Raises AnnalsError with `leased` if somebody else holds it after `wait_ms`.

        Pass its `fence` to every write: from the moment that somebody else takes the lease, they are refused.
        """
        call = Call("POST", ("session", session_id, "lease"), body=lease)
        return await self._waiting(lease.get("wait_ms", 0)).call(call)

    async def renew_lease(self, session_id: str, *, fence: int, ttl_ms: int) -> Lease:
        """Renews a lease. Raises AnnalsError with `fenced` if somebody else has taken it."""
        body = {"fence": fence, "ttl_ms": ttl_ms}
        return await self._transport.call(Call("PUT", ("session", session_id, "lease"), body=body))

    async def release_lease(self, session_id: str, fence: int) -> None:
        path = ("session", session_id, "lease")
        await self._transport.call(Call("DELETE", path, query={"fence": fence}, done_when="session_not_found"))

    @asynccontextmanager
    async def with_lease(
        self,
        session_id: str,
        *,
        owner: str,
        ttl_ms: int = _TTL_MS_DEFAULT,
        wait_ms: int = 0,
        progress: bool = False,
        requires_fence: bool = False,
        steal: bool = False,
    ) -> AsyncStream[AsyncHeldLease]:
        """Holds a session's lease for a `with` block: takes it, renews it, and releases it in the end.

        When it is lost, or nobody can say for its whole time whether it is still held, `lease.lost` is set: stop then.
        Writes with `fence=lease.fence` are refused from that moment on in any case. Raises AnnalsError with `leased`
        if somebody else holds it after `wait_ms`.
        """
        asked_at = monotonic()
        lease: NewLease = {"owner": owner, "ttl_ms": ttl_ms, "wait_ms": wait_ms, "progress": progress}
        taken = await self.take_lease(session_id, **{**lease, "requires_fence": requires_fence, "steal": steal})
        # A lease that was waited for began at an unknown time of the wait, and most likely at its end.
        held_since = monotonic() if wait_ms > 0 else asked_at
        held = AsyncHeldLease(session_id, taken["fence"], owner)
        done = AsyncEvent()
        renewing = AsyncBeside(lambda: self._renew(held, ttl_ms, done, held_since))
        try:
            yield held
        finally:
            done.set()
            await renewing.ended()
            # It ends by itself if this does not get through.
            with suppress(AnnalsError):
                await AsyncRuns(self._within(min(ttl_ms / 1000, _ANSWER_S))).release_lease(session_id, held.fence)

    async def _renew(self, held: AsyncHeldLease, ttl_ms: int, done: AsyncEvent, held_since: float) -> None:
        ttl_s = ttl_ms / 1000
        pause_s = ttl_s * _RENEWED_AFTER
        while not await async_waited(done, min(pause_s, max(held_since + ttl_s - monotonic(), 0))):
            began = monotonic()
            left_s = max(held_since + ttl_s - began, 0.001)
            runs = AsyncRuns(self._within(min(ttl_s * _TRIED_FOR, _ANSWER_S, left_s)))
            try:
                await runs.renew_lease(held.session_id, fence=held.fence, ttl_ms=ttl_ms)
                held_since = began
                pause_s = ttl_s * _RENEWED_AFTER
            except AnnalsError as error:
                if outcome_of(error) == "final" or monotonic() >= held_since + ttl_s:
                    held.reason = error
                    held.lost.set()
                    return
                pause_s = ttl_s * _PAUSE

    async def send(self, session_id: str, new_input: NewInput, *, fence: int | None = None) -> AddedInput:
        """Sends input to a session. With an `id` of your own, also a retry from another process adds it once."""
        body = {"id": str(uuid4()), **new_input}
        return await self._transport.call(Call("POST", ("session", session_id, "inbox"), body=body, fence=fence))

    def inbox(self, session_id: str, **query: Unpack[InboxQuery]) -> AsyncList[InboxInput, Page[InboxInput]]:
        """The input that waits for a session, in order."""
        return AsyncList(self._transport, ("session", session_id, "inbox"), query)

    async def withdraw(
        self, session_id: str, input_id: str, *, reason: str | None = None, fence: int | None = None
    ) -> None:
        """Withdraws input. Raises AnnalsError with `not_pending` if it was applied."""
        path = ("session", session_id, "inbox", input_id)
        await self._transport.call(Call("DELETE", path, query={"reason": reason}, fence=fence))

    async def follow(
        self,
        session_id: str,
        *,
        after: int = 0,
        idle_timeout_s: float = 45.0,
        on_connect: Callable[[], object] | None = None,
        on_disconnect: Callable[[AnnalsError], object] | None = None,
    ) -> AsyncStream[RunFrame]:
        """What happens in a session's run: input, its lease and its requests, as they are when they are sent.

        `after` is the `place` of the last frame that you have seen. It does not end by itself, and reconnects as a
        tail does.
        """
        stream = AsyncTail(
            transport=self._transport,
            what="The run",
            path=("session", session_id, "inbox"),
            query={},
            after=after,
            position=str(after),
            idle_timeout_s=idle_timeout_s,
            on_connect=on_connect,
            on_disconnect=on_disconnect,
        )
        async with aclosing(stream.events()) as events:
            async for event in events:
                # The end of a lease that nobody released has no place of its own.
                after = int(event.id) if event.id.isdigit() else after
                yield cast("RunFrame", {"place": after, "event": event.type, "data": loads(event.data)})

    async def claim(self, **work: Unpack[WorkQuery]) -> Sequence[ClaimedSession]:
        """Leases sessions that have due input and no valid lease, and returns them with that input."""
        call = Call("POST", ("work", "claim"), body=work)
        answer = await self._waiting(work.get("wait_ms", 0)).call(call)
        return cast("dict[str, Sequence[ClaimedSession]]", answer)["items"]

    async def request(
        self, session_id: str, *, fence: int | None = None, **request: Unpack[NewRequest]
    ) -> RunnerRequest:
        """Asks for an approval, or a question. With an `id` of your own, also another process asks once."""
        body = {"id": str(uuid4()), **request}
        return await self._transport.call(Call("POST", ("session", session_id, "requests"), body=body, fence=fence))

    async def get_request(self, request_id: str) -> RunnerRequest:
        return await self._transport.call(Call("GET", ("requests", request_id)))

    def requests(self, **query: Unpack[RequestsQuery]) -> AsyncList[RunnerRequest, Page[RunnerRequest]]:
        """Requests of all sessions, by default the open ones."""
        return AsyncList(self._transport, ("requests",), query)

    async def resolve(self, request_id: str, **resolution: Unpack[Resolution]) -> RunnerRequest:
        """Answers a request. Raises AnnalsError with `resolved` if somebody else has answered."""
        body = {"id": str(uuid4()), **resolution}
        return await self._transport.call(Call("POST", ("requests", request_id, "resolve"), body=body))

    async def resolve_all(self, resolutions: Sequence[ResolutionOf]) -> Sequence[RunnerRequest]:
        """Answers up to 20 requests, all or none."""
        call = Call(
            "POST", ("requests", "resolve"), body={"resolutions": [{"id": str(uuid4()), **one} for one in resolutions]}
        )
        return cast("dict[str, Sequence[RunnerRequest]]", await self._transport.call(call))["items"]

    def _waiting(self, wait_ms: int) -> AsyncTransport:
        if wait_ms == 0:
            return self._transport
        limits = self._transport.limits
        wait_s = wait_ms / 1000
        timeout_s = max(limits.timeout_s, wait_s + 2 * _ANSWER_S)
        return self._transport.with_limits(replace(limits, timeout_s=timeout_s, attempt_timeout_s=wait_s + _ANSWER_S))

    def _within(self, timeout_s: float) -> AsyncTransport:
        """For a call that gives one attempt all of its time."""
        limits = self._transport.limits
        return self._transport.with_limits(replace(limits, timeout_s=timeout_s, attempt_timeout_s=timeout_s))
