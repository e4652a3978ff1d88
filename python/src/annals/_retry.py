"""When a call is made again, and how long it waits for that."""

from __future__ import annotations

import random
from typing import Literal

from ._errors import AnnalsError

_PAUSE_S_MIN = 0.2
_PAUSE_S_MAX = 5.0

Outcome = Literal["refused", "unknown", "final"]
"""What is known of a write whose attempt failed.

- `refused`: the service says that it did nothing and that waiting helps;
- `unknown`: it may have been done: the answer was lost, or something between us and the service answered;
- `final`: asking again would get the same answer.
"""


def outcome_of(error: AnnalsError) -> Outcome:
    if error.error in ("connection_failed", "timeout") or error.status in (502, 504):
        return "unknown"
    if error.status in (429, 503):
        return "unknown" if error.error == "unexpected_answer" else "refused"
    return "final"


def pause_before(attempt: int, error: AnnalsError, pause_s_min: float | None = None) -> float:
    """Seconds to wait before attempt `attempt` + 1.

    Twice as long each time, with chance in it, so that those who wait do not all come back at once; never less
    than the server asked for.
    """
    if pause_s_min is None:
        pause_s_min = _PAUSE_S_MIN
    # The exponent is bounded, as a tail may count to any number of failures.
    pause_s = min(pause_s_min * 2 ** min(attempt - 1, 30), max(_PAUSE_S_MAX, pause_s_min))
    return (error.retry_after_s or 0.0) + pause_s * random.uniform(0.5, 1.0)  # noqa: S311
