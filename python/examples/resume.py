"""An agent that can be killed at any moment and resumes where it was. Two of them can work on one run.

    ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… python resume.py trip-to-oslo

Kill it, and start it again with the same name. The log is its only state: it decides what to do next from the log
alone, and appends only if the log has not grown meanwhile (`if_match`), so two runners cannot mix up their steps.
A tool that was called but has no result is called again, so tools must tolerate that.
"""

from __future__ import annotations

import os
import sys
import time
import uuid

from annals import Annals, AnnalsError
from annals.types import NewEvent, TimelineItem

# In place of a model: the tools that it would call, in order.
PLAN = ["find_flight", "choose_seat", "book_flight", "send_receipt"]


def next_event(log: list[TimelineItem]) -> NewEvent | None:
    """What the agent does next; None if it is done."""
    last = log[-1] if log else None
    if last and last["kind"] == "event" and last["type"] == "tool_call":
        return {"type": "tool_result", "data": {"name": last["data"]["name"], "output": run_tool()}}
    calls = sum(1 for item in log if item["kind"] == "event" and item["type"] == "tool_call")
    return {"type": "tool_call", "data": {"name": PLAN[calls]}} if calls < len(PLAN) else None


def run_tool() -> str:
    time.sleep(0.1)
    return "done"


def run(annals: Annals, name: str) -> None:
    session_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"annals-example:{name}"))
    # Creating it again returns the same session.
    annals.sessions.create(use_uuid=session_id, configs={"agent": "resume-example", "run": name})
    log = [*annals.sessions.timeline(session_id)]
    print(f"{name}: {len(log)} entries so far")
    while event := next_event(log):
        try:
            appended = annals.sessions.append(session_id, if_match=len(log), **event)
            print(f"{appended['seq']} {event['type']} {appended['data']['name']}", flush=True)
        except AnnalsError as error:
            if error.error != "seq_conflict":
                raise
            print("another runner was faster", flush=True)
        log += annals.sessions.timeline(session_id, after_seq=len(log))


if __name__ == "__main__":
    with Annals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as client:
        run(client, sys.argv[1])
