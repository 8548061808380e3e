"""Electing leaders for 200,000 partitions: our selectors over columns against Kafka's own (P2).

Two peers, since Kafka does it in two layers: PartitionLeaderElectionAlgorithms finds the leader alone, Election adds the new
ISR and the recovery state, as ours does, and the receivers, which ours does not need. Every row goes through the selector, one broker of a hundred is gone,
and the leaders elected are checked to be the same. Kafka has no selector for a partition's first leader, so that one has no
row.
"""

import functools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from bench.harness import Effort, Row, alternate, promised, throughput, timed
from bench.jvm import Jvm, compiled_peer
from controller_core.cluster.election_columns import (
    Elections,
    elect_offline,
    elect_preferred,
    elect_shutdown,
)
from controller_core.cluster.placement import place_replicas
from controller_core.model.ids import NO_LEADER

NAME = "election"
ABOUT = "200,000 partitions through each selector, against Kafka's Scala, hot"

ROWS = 200_000
BROKERS = 100
GONE = 7
REPEAT = 5
"""Calls a run: one takes a few milliseconds."""

AT_LEAST = 1.0
PEERS = {
    "choose": "PartitionLeaderElectionAlgorithms, hot (the leader alone)",
    "elect": "Election, hot (leader, ISR, receivers)",
}


def selectors(rows: int = ROWS) -> Mapping[str, Callable[[], Elections]]:
    """Return each selector over the same partitions: placed as Kafka does, all replicas in sync, one broker gone."""
    replicas = place_replicas(dict.fromkeys(range(BROKERS)), rows, 3, 0, 0)
    # One flag more than there are brokers: False, for the padding of lists.
    everybody, gone = np.arange(BROKERS + 1) < BROKERS, np.arange(BROKERS + 1) == GONE
    live = everybody & ~gone
    second = np.ascontiguousarray(replicas[:, 1])
    clean = np.zeros(rows, dtype=np.bool_)
    return {
        "offline": functools.partial(elect_offline, replicas, replicas, live, clean),
        # A preferred election of what is led by its first replica already is never asked for.
        "preferred": functools.partial(elect_preferred, second, replicas, replicas, live),
        "shutdown": functools.partial(elect_shutdown, replicas, replicas, everybody, gone),
    }


def checksum(elections: Elections) -> int:
    """Sum an answer up as the peer does: the leaders, -1 for nobody."""
    assert bool(((elections.leader != NO_LEADER) == elections.elected).all())
    return int(elections.leader.sum())


def measure(effort: Effort) -> Iterator[Row]:
    """Yield a row as soon as it is known."""
    with compiled_peer() as jvm:
        for selector, elect in selectors().items():
            for layer in PEERS:
                yield _row(jvm, layer, selector, elect, effort)


def _row(jvm: Jvm, layer: str, selector: str, elect: Callable[[], Elections], effort: Effort) -> Row:
    ours = timed(elect, REPEAT)
    with jvm.hot(layer, str(ROWS), selector, str(GONE), quick=effort.quick) as peer:
        assert checksum(elect()) == peer.checksum, f"both elect the same leaders ({selector})"
        ours()
        seconds = alternate(ours, peer.run, effort.runs())
    what = f"{selector} selector over {ROWS:,} partitions, RF 3, one of {BROKERS} brokers gone; columns"
    row = throughput(f"{NAME}.{selector}.{layer}", what, PEERS[layer], "partitions/s", ROWS, seconds)
    return promised(row, "P2", AT_LEAST)
