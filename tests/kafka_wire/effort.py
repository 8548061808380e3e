"""How many examples the property tests try: a few in a usual run, as many as one likes in a soak, a tenth in a quick run.

KAFKA_WIRE_EFFORT=50 python -m pytest tests/kafka_wire
"""

import os

from hypothesis import HealthCheck, Phase, settings

EFFORT = float(os.environ.get("KAFKA_WIRE_EFFORT", "1"))


def examples(count: int) -> settings:
    """Return settings for `count` examples in a usual run.

    No deadline, for the first example of a message compiles its codec; no health checks, for a strategy over a whole schema is
    slow to draw from; no database, for a failure is printed with all that it takes to repeat it.
    """
    return settings(
        max_examples=max(1, int(count * EFFORT)),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
