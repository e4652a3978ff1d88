"""A run of the OpenAI Agents SDK that needs an approval. Its process is killed while it waits; a person says yes;
another process, which runs the same program, goes on with the call that was approved.

    ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… python openai_agents_resume.py

It runs offline, with the SDK's scripted model; give the agent a real one.
"""
# pyright: standard

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from annals import Annals, AsyncAnnals
from annals.openai_agents import AnnalsSession

CONFIG = RunConfig(tracing_disabled=True)
CALL = [function_call("book_seat", {"seat": "14C"}, call_id="call_1")]
LAST = [assistant_message("Seat 14C is yours.")]


@function_tool(needs_approval=True)
def book_seat(seat: str) -> str:
    """Books a seat."""
    return f"{seat} is booked"


async def work(name: str) -> None:
    """Starts the run, or goes on with the one that waits."""
    async with AsyncAnnals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        session = AnnalsSession(name, annals, user="omar")
        async with session.with_lease(owner=f"process {os.getpid()}", ttl_ms=2_000, wait_ms=30_000):
            agent = Agent(name="Booking", model=ScriptedModel([LAST]), tools=[book_seat])
            state = await session.resume(agent)
            if state is None:
                agent = Agent(name="Booking", model=ScriptedModel([CALL, LAST]), tools=[book_seat])
                asked = await Runner.run(agent, "Book seat 14C.", session=session, run_config=CONFIG)
                await session.checkpoint(asked)
                print(session.id, flush=True)
                state = await session.resume(agent)
            assert state
            done = await Runner.run(agent, state, session=session, run_config=CONFIG)
            await session.checkpoint(done)
            kinds = ", ".join(item.get("type") or "message" for item in await session.get_items())
            print(f"{done.final_output} ({kinds})")


def main() -> None:
    program = [sys.executable, __file__, f"booking {uuid.uuid4()}"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        session_id = first.stdout.readline().strip()
        first.send_signal(signal.SIGKILL)
    with Annals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        for request in annals.runs.requests(session_id=session_id):
            print(f"a person approves {request.get('call')}", flush=True)
            annals.runs.resolve(
                request["id"], decision="approve", by="ada", call_sha256=request.get("call_sha256") or ""
            )
    subprocess.run(program, check=True)


if len(sys.argv) > 1:
    asyncio.run(work(sys.argv[1]))
else:
    main()
