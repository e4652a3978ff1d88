"""A graph whose process is killed in the middle goes on in another one: what was done is not done again.

    ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… python langgraph_resume.py

Then it waits for a person, and a third process goes on with the answer. It runs offline; ask a model in `write`.
"""
# pyright: standard

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from annals import Annals
from annals.langgraph import AnnalsSaver


class State(TypedDict, total=False):
    topic: str
    fact: str
    title: str
    verdict: str


def research(state: State) -> State:
    print(f"process {step}: researches {state.get('topic')}", flush=True)
    return {"fact": f"{state.get('topic')} were built by hand."}


def write(state: State) -> State:
    if step == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"process {step}: writes", flush=True)
    return {"title": f"By hand: {state.get('fact')}"}


def review(state: State) -> State:
    return {"verdict": interrupt(f'Publish "{state.get("title")}"?')}


def run(thread_id: str) -> None:
    with Annals(url=os.environ["ANNALS_URL"], token=os.environ["ANNALS_API_KEY"]) as annals:
        builder = StateGraph(State).add_node(research).add_node(write).add_node(review)
        builder.add_edge(START, "research").add_edge("research", "write")
        builder.add_edge("write", "review").add_edge("review", END)
        graph = builder.compile(checkpointer=AnnalsSaver(annals))
        given = {"1": {"topic": "cathedrals"}, "2": None, "3": Command(resume="yes")}[step]
        # A step begins when what the one before did is durable.
        state = graph.invoke(given, {"configurable": {"thread_id": thread_id}}, durability="sync")
        if step == "2":
            print(f"process 2: waits for a person: {state['__interrupt__'][0].value}", flush=True)
        else:
            print(f"process 3: verdict {state['verdict']}", flush=True)


if len(sys.argv) > 1:
    _, step, thread = sys.argv
    run(thread)
else:
    new_thread = str(uuid.uuid4())
    for number in ("1", "2", "3"):
        done = subprocess.run([sys.executable, __file__, number, new_thread], check=False)
        if done.returncode == -signal.SIGKILL:
            print(f"process {number}: was killed", flush=True)
        elif done.returncode != 0:
            sys.exit(1)
