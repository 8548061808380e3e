"""Values for tests of the pure core: clusters, partitions and their states, drawn by hypothesis or by a seeded random source."""

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from controller_core.rules.placement import Racks

MAX_BROKER = 12
RACK_NAMES = ("a", "b", "B", "rack-10", "rack-9", "\ufb01", "\U0001f600")
"""The last two are in one order by code point and in the other by UTF-16 unit, which is Java's."""


@dataclass(frozen=True)
class PartitionCase:
    """One partition before an election, and who lives."""

    assignment: list[int]
    isr: list[int]
    leader: int
    live: set[int]
    shutting_down: set[int]
    unclean_allowed: bool


def ids() -> st.SearchStrategy[int]:
    """Broker ids."""
    return st.integers(0, MAX_BROKER)


@st.composite
def partition_cases(draw: st.DrawFn) -> PartitionCase:
    """Any partition: the ISR within the assignment in an order of its own, the leader in it or none."""
    assignment = draw(st.lists(ids(), min_size=1, max_size=5, unique=True))
    shuffled = draw(st.permutations(assignment))
    isr = shuffled[: draw(st.integers(0, len(shuffled)))]
    return PartitionCase(
        assignment,
        isr,
        leader=draw(st.sampled_from([-1, *isr])),
        live=draw(st.sets(ids())),
        shutting_down=draw(st.sets(ids(), max_size=3)),
        unclean_allowed=draw(st.booleans()),
    )


def random_partition(source: random.Random) -> PartitionCase:
    """Draw the same kind of partition by a seeded source, quickly and by the thousand."""
    assignment = source.sample(range(MAX_BROKER), source.randint(1, 5))
    isr = source.sample(assignment, source.randint(0, len(assignment)))
    return PartitionCase(
        assignment,
        isr,
        leader=source.choice([-1, *isr]),
        live=set(source.sample(range(MAX_BROKER), source.randint(0, MAX_BROKER))),
        shutting_down=set(source.sample(range(MAX_BROKER), source.choice([0, 0, 1, 2]))),
        unclean_allowed=source.random() < 0.5,
    )


@st.composite
def clusters(draw: st.DrawFn, *, racks: bool | None = None) -> Racks:
    """Brokers by id, all with a rack or all without one."""
    found = draw(st.sets(st.integers(0, 2000), min_size=1, max_size=MAX_BROKER))
    with_racks = draw(st.booleans()) if racks is None else racks
    names = st.sampled_from(RACK_NAMES)
    return {broker: draw(names) if with_racks else None for broker in sorted(found)}


def random_cluster(source: random.Random) -> Racks:
    """Draw the same kind of cluster by a seeded source."""
    found = sorted(source.sample(range(2000), source.randint(1, MAX_BROKER)))
    if source.random() < 0.4:
        return dict.fromkeys(found)
    names = source.sample(RACK_NAMES, source.randint(1, len(RACK_NAMES)))
    return {broker: source.choice(names) for broker in found}
