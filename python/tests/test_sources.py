"""The size limit for functions. `npm test` checks the one for files."""

from __future__ import annotations

import ast
from pathlib import Path

PYTHON = Path(__file__).parents[1]
FUNCTION_LINES_MAX = 70


def test_no_function_is_longer_than_70_lines() -> None:
    functions = [
        (node.name, (node.end_lineno or 0) - node.lineno + 1)
        for path in PYTHON.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(functions) > 100
    assert [(name, lines) for name, lines in functions if lines > FUNCTION_LINES_MAX] == []
