"""Which failures are retried, and after what pause."""

from __future__ import annotations

import random
from typing import Literal

from ._errors import AnnalsError

_PAUSE_S_MIN = 0.2
_PAUSE_S_MAX = 5.0

Outcome = Literal["refused", "unknown", "final"]
"""What is known about a failed attempt of a write.

- `refused`: the service did nothing and asks to be retried later;
- `unknown`: the write may have happened, because its answer was lost or a proxy answered;
- `final`: a retry would get the same answer.
"""


def outcome_of(error: AnnalsError) -> Outcome:
    if error.error in ("connection_failed", "timeout") or error.status in (502, 504):
        return "unknown"
    if error.status in (429, 503):
        return "unknown" if error.error == "unexpected_answer" else "refused"
    return "final"


def pause_before(attempt: int, error: AnnalsError, pause_s_min: float | None = None) -> float:
    """Seconds to wait before attempt `attempt` + 1.

    It doubles each time and has jitter, so that clients do not all return at once. It is never shorter than the
    server asked.
    """
    if pause_s_min is None:
        pause_s_min = _PAUSE_S_MIN
    # A tail may fail any number of times in a row, so the exponent is limited.
    pause_s = min(pause_s_min * 2 ** min(attempt - 1, 30), max(_PAUSE_S_MAX, pause_s_min))
    return (error.retry_after_s or 0.0) + pause_s * random.uniform(0.5, 1.0)  # noqa: S311
