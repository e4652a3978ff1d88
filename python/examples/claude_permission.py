"""The permission callback of the Claude Agent SDK asks a person through Annals. The process is killed while it waits; a
second one, with the same call, finds the answer and goes on.

    ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… python claude_permission.py

It runs offline: it calls the callback as the SDK does, which takes it as `ClaudeAgentOptions(can_use_tool=…)`.
"""
# pyright: standard

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from typing import Any

from claude_agent_sdk import CanUseTool, PermissionResultAllow, PermissionResultDeny, ToolPermissionContext

from annals import Annals, AsyncAnnals


def can_use_tool_of(annals: AsyncAnnals, session_id: str) -> CanUseTool:
    async def can_use_tool(
        name: str, given: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        # One request for one call of a session, whichever process asks.
        request_id = str(uuid.uuid5(uuid.UUID(session_id), json.dumps([name, given], sort_keys=True)))
        call: Any = {"name": name, "arguments": given}
        asked = await annals.runs.request(session_id, id=request_id, kind="approval", call=call)
        print("asks", flush=True)
        if asked["state"] == "open":
            async for item in annals.sessions.tail(session_id, after=asked["seq"], type="annals.resolution"):
                if item["kind"] == "event" and item["data"].get("request_id") == request_id:
                    break
            asked = await annals.runs.get_request(request_id)
        if asked.get("decision") == "approve":
            return PermissionResultAllow(updated_input=given)
        return PermissionResultDeny(message=f"{asked.get('by', 'nobody')} did not allow it")

    return can_use_tool


async def work(session_id: str) -> None:
    async with AsyncAnnals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        can_use_tool = can_use_tool_of(annals, session_id)
        allowed = await can_use_tool("Bash", {"command": "npm publish"}, ToolPermissionContext())
        print(f"{allowed.behavior} {getattr(allowed, 'updated_input', None)}")


def main() -> None:
    with Annals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        session_id = annals.sessions.create()["id"]
        program = [sys.executable, __file__, session_id]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout
            assert first.stdout.readline() == "asks\n"
            first.send_signal(signal.SIGKILL)
        for request in annals.runs.requests(session_id=session_id):
            print(f"a person allows {request.get('call')}", flush=True)
            sha256 = request.get("call_sha256") or ""
            annals.runs.resolve(request["id"], decision="approve", by="ada", call_sha256=sha256)
        subprocess.run(program, check=True)


if len(sys.argv) > 1:
    asyncio.run(work(sys.argv[1]))
else:
    main()
