"""Runs the Python client `acontext`, as it is on PyPI, against a running Annals.

    ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… python check.py

Every check is a line, `ok …` or `FAILED …`; the last line is `N passed, N failed`. It exits with 1 if one failed.
`run.sh` beside it makes the environment and starts the server.
"""

import sys

sys.dont_write_bytecode = True  # a run leaves nothing in the working tree

from acontext import AcontextClient  # noqa: E402

import absent  # noqa: E402, F401
import conversations  # noqa: E402, F401
import messages  # noqa: E402, F401
import sessions  # noqa: E402, F401
import skills  # noqa: E402, F401
import users_and_spaces  # noqa: E402, F401
from checks import run_checks, settings  # noqa: E402


def main() -> int:
    base_url, api_key = settings()
    with AcontextClient(base_url=base_url, api_key=api_key) as client:
        return 1 if run_checks(client) else 0


sys.exit(main())
