"""An agent of the ADK whose tool needs a confirmation. The process is killed while it waits; a person says yes, and
another process, which runs the same program, goes on with the call that was approved.

    ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… python adk_approval.py

It runs offline, with a scripted model. A long-running tool waits in the same way.
"""
# pyright: standard

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools import FunctionTool
from google.genai import types

from annals import Annals, AsyncAnnals
from annals.adk import AnnalsSessionService

NAME: Any = {"app_name": "till", "user_id": "omar", "session_id": "order 17"}


class ScriptedModel(BaseLlm):
    """Calls the tool, and says what it returned."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        returned = [part.function_response.response or {} for part in parts if part.function_response]
        paid = next((response["paid"] for response in returned if "paid" in response), None)
        call = types.Part.from_function_call(name="pay", args={"to": "Ada", "eur": 40})
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=f"{paid}.") if paid else call]))


def pay(to: str, eur: int) -> dict[str, str]:
    """Pays."""
    return {"paid": f"{to} got {eur} EUR"}


async def run(sessions: AnnalsSessionService, message: types.Content) -> None:
    agent = LlmAgent(
        name="till", model=ScriptedModel(model="scripted"), tools=[FunctionTool(pay, require_confirmation=True)]
    )
    runner = Runner(app_name="till", agent=agent, session_service=sessions)
    async for event in runner.run_async(user_id=NAME["user_id"], session_id=NAME["session_id"], new_message=message):
        for part in (event.content and event.content.parts) or []:
            if part.text:
                print(part.text, flush=True)


async def work() -> None:
    """Starts the run, or goes on with the one that waits."""
    async with AsyncAnnals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        sessions = AnnalsSessionService(annals)
        session_id = sessions.annals_id(**NAME)
        if await sessions.get_session(**NAME) is None:
            await sessions.create_session(**NAME)
            await run(sessions, types.Content(role="user", parts=[types.Part(text="Pay Ada 40 EUR.")]))
            await sessions.ask_for_approvals(**NAME)
            print(session_id, flush=True)
        # One process at a time: the tool must not run twice.
        owner = f"process {os.getpid()}"
        async with annals.runs.with_lease(session_id, owner=owner, ttl_ms=2_000, wait_ms=30_000):
            answer = await sessions.resume(**NAME)
            if answer:
                await run(sessions, answer)
        print(f"{len(await sessions.ask_for_approvals(**NAME))} calls wait")


def main() -> None:
    program = [sys.executable, __file__, "work"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        session_id = first.stdout.readline().strip()
        first.send_signal(signal.SIGKILL)
    with Annals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        for request in annals.runs.requests(session_id=session_id):
            print(f"a person approves {request.get('call')}", flush=True)
            sha256 = request.get("call_sha256") or ""
            annals.runs.resolve(request["id"], decision="approve", by="bob", call_sha256=sha256)
    subprocess.run(program, check=True)


if len(sys.argv) > 1:
    # The scripted model counts no tokens, of which the ADK warns.
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    asyncio.run(work())
else:
    main()
