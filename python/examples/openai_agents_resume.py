"""A run of the OpenAI Agents SDK that is killed while it waits for an approval, and goes on in another process.

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

from agents import Agent, RunConfig, Runner, RunState, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from annals import AsyncAnnals
from annals.openai_agents import AnnalsSession

CONFIG = RunConfig(tracing_disabled=True)


@function_tool(needs_approval=True)
def book_seat(seat: str) -> str:
    """Books a seat."""
    return f"{seat} is booked"


async def first_process(name: str) -> None:
    """Runs until the call needs an approval, and dies without another word. What it knew is in Annals."""
    async with AsyncAnnals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        session = AnnalsSession(name, annals, user="omar")
        model = ScriptedModel([[function_call("book_seat", {"seat": "14C"}, call_id="call_1")]])
        agent = Agent(name="Booking", model=model, tools=[book_seat])
        done = await Runner.run(agent, "Book seat 14C.", session=session, run_config=CONFIG)
        state = done.to_state().to_json()
        await annals.sessions.append(session.id, type="waits_for_approval", key="run", data={"state": state})
        os.kill(os.getpid(), signal.SIGKILL)


async def second_process(name: str) -> None:
    async with AsyncAnnals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        session = AnnalsSession(name, annals)
        agent = Agent(
            name="Booking", model=ScriptedModel([[assistant_message("Seat 14C is yours.")]]), tools=[book_seat]
        )
        waiting = (await annals.sessions.latest(session.id, key="run").page())["items"][0]
        assert waiting["kind"] == "event"
        state = await RunState.from_json(agent, waiting["data"]["state"])
        for call in state.get_interruptions():
            state.approve(call)
        done = await Runner.run(agent, state, session=session, run_config=CONFIG)
        kinds = ", ".join(item.get("type") or "message" for item in await session.get_items())
        print(f"{done.final_output} ({kinds})")


if len(sys.argv) > 1:
    asyncio.run(first_process(sys.argv[1]))
else:
    booking = f"booking {uuid.uuid4()}"
    code = subprocess.run([sys.executable, __file__, booking], check=False).returncode
    print("The first process was killed." if code == -signal.SIGKILL else f"The first process ended with {code}.")
    asyncio.run(second_process(booking))
