"""The examples in the pages run, and print what they say; check.sh looks at their types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from annals import Annals

from .service import Service

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ["adk", "claude-agent-sdk", "langgraph", "openai-agents", "pydantic-ai"]
PAGES = [
    *("docs/python.md", "docs/tutorial.md", "python/README.md", "README.md"),
    *(f"docs/integrations/{framework}.md" for framework in FRAMEWORKS),
]


def program_of(page: str) -> str:
    """All examples of a page, as one program."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_the_program_of_a_page_prints_what_it_says(page: str, service: Service) -> None:
    program = program_of(page)
    expected = [
        line for said in re.findall(r"print\(.*\)  # (.+)$", program, re.MULTILINE) for line in said.split(" | ")
    ]
    assert expected
    environment = {**os.environ, "ANNALS_URL": service.url, "ANNALS_API_KEY": service.token}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stderr, done.stdout.splitlines()) == ("", expected)


def test_the_page_names_every_method_of_the_client() -> None:
    page = (ROOT / "docs/python.md").read_text()
    with Annals(url="http://127.0.0.1:1", token="none") as annals:
        parts: dict[str, object] = vars(annals)
        places: dict[str, object] = {"annals": annals}
        places |= {f"annals.{name}": part for name, part in parts.items() if not name.startswith("_")}
    assert len(places) > 5
    for place, part in places.items():
        line = next(line for line in page.splitlines() if line.startswith(f"| `{place}` |"))
        methods = [name for name in vars(type(part)) if not name.startswith("_")]
        assert [name for name in methods if f"`{name}`" not in line] == []


def write_programs(directory: Path) -> None:
    """Each page's program as a file, for the type checker."""
    for page in PAGES:
        # Frameworks are not typed throughout.
        mode = "standard" if "integrations" in page else "strict"
        (directory / f"{page.replace('/', '_')}.py").write_text(f"# pyright: {mode}\n{program_of(page)}")


if __name__ == "__main__":
    write_programs(Path(sys.argv[1]))
