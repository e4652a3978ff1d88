from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from annals import Annals

from .service import Service, new_name

EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE = EXAMPLES / "resume.py"
PLAN = ["find_flight", "choose_seat", "book_flight", "send_receipt"]
EXPECTED = [(kind, name) for name in PLAN for kind in ("tool_call", "tool_result")]


def start(service: Service, name: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "ANNALS_URL": service.url, "ANNALS_API_KEY": service.token}
    return subprocess.Popen([sys.executable, str(EXAMPLE), name], env=environment, stdout=subprocess.PIPE, text=True)


def log_of(service: Service, name: str) -> list[tuple[str, str]]:
    session_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"annals-example:{name}"))
    with Annals(url=service.url, token=service.token) as annals:
        return [(event["type"], event["data"]["name"]) for event in annals.sessions.events(session_id)]


def is_killed_after_an_entry(service: Service, name: str) -> bool:
    """Whether the agent appended one before it finished."""
    with start(service, name) as agent:
        assert agent.stdout
        for line in agent.stdout:
            if re.match(r"\d+ tool_", line):
                agent.kill()
                return True
    assert agent.returncode == 0
    return False


def test_an_agent_that_is_killed_after_each_entry_resumes_and_finishes(service: Service) -> None:
    name = new_name("run")
    kills = 0
    while is_killed_after_an_entry(service, name):
        kills += 1
        assert kills <= len(EXPECTED)
    assert kills > 2
    assert log_of(service, name) == EXPECTED


def test_two_agents_on_one_run_do_not_mix_up_its_steps(service: Service) -> None:
    name = new_name("run")
    agents = [start(service, name) for _ in range(2)]
    assert [agent.communicate() and agent.returncode for agent in agents] == [0, 0]
    assert log_of(service, name) == EXPECTED


LANGGRAPH = """process 1: researches cathedrals
process 1: was killed
process 2: writes
process 2: waits for a person: Publish "By hand: cathedrals were built by hand."?
process 3: verdict yes
"""
OPENAI_AGENTS = """a person approves {'name': 'book_seat', 'arguments': {'seat': '14C'}}
Seat 14C is yours. (message, function_call, function_call_output, message)
"""
LANGGRAPH_APPROVAL = """the first process ended by SIGKILL
a person approves {'name': 'pay', 'arguments': {'eur': 40}}
the second process paid 40 EUR
"""
ADK_APPROVAL = """a person approves {'name': 'pay', 'arguments': {'to': 'Ada', 'eur': 40}}
Ada got 40 EUR.
0 calls wait
"""
CLAUDE_PERMISSION = """a person allows {'name': 'Bash', 'arguments': {'command': 'npm publish'}}
asks
allow {'command': 'npm publish'}
"""


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("adk_approval.py", ADK_APPROVAL),
        ("claude_permission.py", CLAUDE_PERMISSION),
        ("langgraph_approval.py", LANGGRAPH_APPROVAL),
        ("langgraph_resume.py", LANGGRAPH),
        ("openai_agents_resume.py", OPENAI_AGENTS),
    ],
)
def test_a_run_of_a_framework_that_is_killed_goes_on_in_another_process(
    name: str, printed: str, service: Service
) -> None:
    environment = {**os.environ, "ANNALS_URL": service.url, "ANNALS_API_KEY": service.token}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.stderr, done.stdout) == ("", printed)
