"""Appends to a KRaft quorum of three while 100 observers fetch its log, as brokers do: Steward voters, and TestRaftServers, in turn (P7).

Both sides have the same observers, in a process of their own on the same machine (`observer_load`).
"""

from collections.abc import Iterator

from bench.harness import Effort, Row
from bench.quorum.appends import LINGERS_MS, Setup, rows

NAME = "quorum-observers"
ABOUT = "appends to a quorum of three while 100 observers fetch, compared with Kafka's TestRaftServer (fifteen minutes)"

OBSERVERS = 100
LEAST_PER_S = 1_000
"""Records a second: the observers take a core of the machine."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of each linger."""
    for linger_ms in LINGERS_MS:
        yield from rows(NAME, Setup(linger_ms, observers=OBSERVERS, least_per_s=LEAST_PER_S), effort)
