"""Parameters that a seed draws for its run: the nodes, their rules and settings at extremes, and the rates of all faults."""

from dataclasses import dataclass, replace
from random import Random

from controller_core.quorum.rules import Rules
from tests.sim.network import Weather


@dataclass(frozen=True)
class Swarm:
    """Parameters of one run."""

    voters: int
    controllers: int
    """Nodes that are not voters at the start, and may become voters."""
    brokers: int
    """Nodes that only observe."""
    kraft_version: int
    rules: tuple[Rules, ...]
    """Rules of the nodes in turn."""
    weather: Weather
    crash: float
    restart_every_ms: int
    """Interval after which each node that is down starts with a chance of one half."""
    flush_ms: int
    partitions: bool
    partition_ms: int
    """About how long links stay cut."""
    pauses: bool
    drift_percent: int
    append_every_ms: int
    snapshot_every_ms: int
    """0: no snapshots."""
    fetch_timeout_spread_ms: int
    fetch_max_bytes: int
    fetch_snapshot_max_bytes: int
    changes: bool
    """Whether voters are added and removed, at kraft.version 1."""
    upgrades: bool
    auto_join: bool
    wipes: bool
    """Whether a voter gets an empty disk with another directory id, one at a time; it joins again by itself."""
    damage: bool = False
    """Whether sectors of one voter's disk fail or have what was written for another place; it does not start again then."""


def draw(seed: int) -> Swarm:
    """Draw the parameters of a seed."""
    random = Random(f"swarm {seed}")
    kraft_version = random.choice((0, 1))
    three = Rules.KAFKA_3
    rules = random.choice(((Rules.KAFKA_4,), (Rules.KAFKA_4,), (three,), (Rules.KAFKA_4, three)))
    if kraft_version:
        rules = (Rules.KAFKA_4,)
    drawn = Swarm(
        voters=random.choice((1, 2, 3, 3, 3, 4, 5)),
        controllers=random.choice((0, 1, 2)) if kraft_version else 0,
        brokers=random.choice((0, 0, 1, 2)),
        kraft_version=kraft_version,
        rules=rules,
        weather=Weather(
            random.choice((0.0, 0.02, 0.1, 0.3)), random.choice((0.0, 0.05, 0.3)), random.choice((0, 2, 20, 100))
        ),
        crash=random.choice((0.0, 0.0005, 0.002, 0.01)),
        restart_every_ms=random.choice((20, 100, 500)),
        flush_ms=random.choice((0, 2, 20, 200)),
        partitions=random.random() < 0.5,
        pauses=random.random() < 0.3,
        drift_percent=random.choice((0, 0, 5)),
        append_every_ms=random.choice((5, 20, 100)),
        snapshot_every_ms=random.choice((0, 200, 1000)),
        fetch_timeout_spread_ms=random.choice((0, 100)),
        fetch_max_bytes=random.choice((1, 10, 1024 * 1024)),
        fetch_snapshot_max_bytes=random.choice((1, 16, 1024 * 1024)),
        changes=bool(kraft_version) and random.random() < 0.6,
        upgrades=not kraft_version and rules == (Rules.KAFKA_4,) and random.random() < 0.5,
        auto_join=random.random() < 0.5,
        partition_ms=random.choice((1500, 1500, 9000)),
        wipes=bool(kraft_version) and random.random() < 0.5,
        damage=random.random() < 0.4,
    )
    # A wiped voter comes back only by joining, and of fewer than three voters none can be missed, and of any number only one.
    wipes = drawn.wipes and drawn.auto_join and drawn.voters >= 3
    return replace(drawn, wipes=wipes, damage=drawn.damage and drawn.voters >= 3 and not (wipes or drawn.changes))
