"""Number of examples of the property tests: few in a normal run, a tenth of these in a quick run, any number in a soak.

KAFKA_WIRE_EFFORT=50 python -m pytest tests/kafka_wire
"""

import os

from hypothesis import HealthCheck, Phase, settings

EFFORT = float(os.environ.get("KAFKA_WIRE_EFFORT", "1"))


def examples(count: int) -> settings:
    """Return settings for `count` examples in a normal run.

    No deadline, because the first example of a message compiles its codec; no health checks, because a strategy over a whole schema is
    slow; no database, because a failure is printed with everything that is needed to reproduce it.
    """
    return settings(
        max_examples=max(1, int(count * EFFORT)),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
