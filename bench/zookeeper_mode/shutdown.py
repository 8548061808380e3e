"""SIGTERM of a broker that leads a thousand partitions: Steward and a native controller on the same cluster (P4, small).

Two figures: from the signal to the last partition with another leader in ZooKeeper, and to the broker's exit. Most of the second is the
broker's own work (it closes a thousand logs) and equal for both.
"""

import time
from collections.abc import Iterator

from bench.harness import Effort, Row, duration
from bench.zookeeper_mode.layout import VICTIM, Holder, Layout, layout

NAME = "shutdown"
ABOUT = "SIGTERM of the leader of 1,000 partitions, compared with a native controller (minutes)"

ROUNDS = 3
PEER = "Kafka 3.9's controller, in a broker of the same cluster"
GRACEFUL = "Controlled shutdown request returned successfully"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield both rows after the last round."""
    with layout(quick=effort.quick) as stage:
        rounds = effort.runs(ROUNDS)
        pairs = [(one_shutdown(stage, Holder.OURS), one_shutdown(stage, Holder.NATIVE)) for _ in range(rounds)]
        about = f"SIGTERM of the leader of {stage.partitions:,} partitions, RF 3, 4 brokers"
    for place, (name, message) in enumerate(
        (("moved", "to the last new leader in ZooKeeper"), ("exit", "to the broker's exit"))
    ):
        seconds = [mine[place] for mine, _ in pairs], [theirs[place] for _, theirs in pairs]
        yield duration(f"{NAME}.{name}", f"{about}; {message}; {rounds} rounds, for restarts are slow", PEER, seconds)


def one_shutdown(stage: Layout, holder: Holder) -> tuple[float, float]:
    """Stop the victim under this controller; seconds until its leaders had moved and until it had ended."""
    stage.prepare(holder)
    stage.logs[VICTIM].mark()
    asked_s = time.time()
    stage.cluster.broker(VICTIM).stop()
    ended_s = time.time()
    assert stage.logs[VICTIM].stamps(GRACEFUL), "the broker went without the controller's leave"
    written_s = stage.wait_until_led_by_others()
    # An ISR may still shrink afterwards because of a follower's fetch; leaders had moved when the controller answered.
    return min(written_s, stage.logs[VICTIM].stamps(GRACEFUL)[-1]) - asked_s, ended_s - asked_s
