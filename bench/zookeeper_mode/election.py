"""Leader election of 200,000 partitions with each of Kafka's selectors: Steward's columns and Kafka's own code (P2).

There are two peers, because Kafka has two layers: PartitionLeaderElectionAlgorithms only chooses the leader; Election adds the new ISR
and the recovery state, as Steward does, and the receivers, which Steward does not need. Every partition goes through the selector, one
broker of a hundred is lost, and the elected leaders are checked to be equal. Kafka has no selector for a partition's first leader, so that
one has no row.
"""

import functools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from bench.harness import Effort, Row, alternate, promised, throughput, timed
from bench.jvm import Jvm, compiled_peer
from controller_core.model import NO_LEADER
from controller_core.rules.election_columns import Elections, elect_offline, elect_preferred, elect_shutdown
from controller_core.rules.placement import place_replicas

NAME = "election"
ABOUT = "leader election of 200,000 partitions with each selector, compared with Kafka's Scala code, hot"

ROWS = 200_000
BROKERS = 100
GONE = 7
REPEAT = 5
"""Calls in a run: one takes a few milliseconds."""

AT_LEAST = 1.0
PEERS = {
    "choose": "PartitionLeaderElectionAlgorithms, hot (only the leader)",
    "elect": "Election, hot (leader, ISR, receivers)",
}


def selectors(rows: int = ROWS) -> Mapping[str, Callable[[], Elections]]:
    """Return each selector over the same partitions: placed as Kafka does, all replicas in sync, one broker lost."""
    replicas = place_replicas(dict.fromkeys(range(BROKERS)), rows, 3, 0, 0)
    # One flag more than there are brokers: False, for the padding of lists.
    all_brokers, gone = np.arange(BROKERS + 1) < BROKERS, np.arange(BROKERS + 1) == GONE
    live = all_brokers & ~gone
    second = np.ascontiguousarray(replicas[:, 1])
    clean = np.zeros(rows, dtype=np.bool_)
    return {
        "offline": functools.partial(elect_offline, replicas, replicas, live, clean),
        # No preferred election is requested for a partition whose first replica is the leader already.
        "preferred": functools.partial(elect_preferred, second, replicas, replicas, live),
        "shutdown": functools.partial(elect_shutdown, replicas, replicas, all_brokers, gone),
    }


def checksum(elections: Elections) -> int:
    """Compute the checksum of an answer as the peer does, with -1 for no leader."""
    assert bool(((elections.leader != NO_LEADER) == elections.elected).all())
    return int(elections.leader.sum())


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
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
