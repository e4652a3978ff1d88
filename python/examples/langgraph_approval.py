"""A graph's interrupt becomes a request, which a person answers while no process of the graph runs: the one that asked
was killed. Another one reads the answer and resumes the graph with it.

    ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… python langgraph_approval.py
"""
# pyright: standard

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from annals import Annals
from annals.langgraph import AnnalsSaver


class State(TypedDict, total=False):
    eur: int
    paid: str


def pay(state: State) -> State:
    eur = state.get("eur")
    decision = interrupt({"name": "pay", "arguments": {"eur": eur}})
    return {"paid": f"{eur} EUR" if decision == "approve" else "nothing"}


def work(annals: Annals, step: str, session_id: str, request_id: str) -> None:
    builder = StateGraph(State).add_node(pay).add_edge(START, "pay").add_edge("pay", END)
    graph = builder.compile(checkpointer=AnnalsSaver(annals))
    config: RunnableConfig = {"configurable": {"thread_id": f"thread of {session_id}"}}
    if step == "ask":
        state = graph.invoke({"eur": 40}, config, durability="sync")
        call = state["__interrupt__"][0].value
        annals.runs.request(session_id, id=request_id, kind="approval", call=call)
        os.kill(os.getpid(), signal.SIGKILL)
    decision = annals.runs.get_request(request_id).get("decision", "deny")
    state = graph.invoke(Command(resume=decision), config, durability="sync")
    print(f"the second process paid {state['paid']}", flush=True)


def main(annals: Annals) -> None:
    program = [sys.executable, __file__]
    names = [annals.sessions.create()["id"], str(uuid.uuid4())]
    first = subprocess.run([*program, "ask", *names], check=False)
    print(f"the first process ended by {signal.Signals(-first.returncode).name}", flush=True)
    asked = annals.runs.get_request(names[1])
    print(f"a person approves {asked.get('call')}", flush=True)
    annals.runs.resolve(asked["id"], decision="approve", by="ada", call_sha256=asked.get("call_sha256") or "")
    subprocess.run([*program, "resume", *names], check=True)


with Annals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as client:
    if len(sys.argv) > 1:
        work(client, *sys.argv[1:])
    else:
        main(client)
