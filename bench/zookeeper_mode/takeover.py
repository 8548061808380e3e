"""Deletion of the controller's znode, until the last broker has the new controller's states: Steward and native controllers (P3, small).

The brokers of the cluster compete for the znode whenever it is free; when a broker is faster, Steward takes it over, and that time counts
for Steward. Times: the deletion, by the clock of the client that deletes; the new controller, by ZooKeeper's timestamp of the new znode;
the end, when the last broker logs that it handles the new controller's LeaderAndIsr with all of its partitions.
"""

import time
from collections.abc import Iterator

from bench.harness import Effort, Row, duration
from bench.zookeeper_mode.layout import BROKERS, CHROOT, PATIENCE_S, Holder, Layout, layout
from lab.processes.waiting import wait_until

NAME = "takeover"
ABOUT = "/controller deleted: active again over 1,000 partitions, compared with a native controller"

PEER = "Kafka 3.9's controllers, in the brokers of the same cluster"
HANDLING = r"Handling LeaderAndIsr request correlationId \d+ from controller {controller} for {partitions} partitions"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield both rows after the last round."""
    with layout(quick=effort.quick) as stage:
        rounds = effort.runs()
        pairs = [(one_takeover(stage, Holder.OURS), one_takeover(stage, Holder.NATIVE)) for _ in range(rounds)]
        about = f"/controller deleted, {stage.partitions:,} partitions, RF 3, 4 brokers"
    for place, (name, message) in enumerate(
        (
            ("whole", "to the last request to a broker about its partitions"),
            ("own_part", "from the controller election to the last request to a broker about its partitions"),
        )
    ):
        seconds = [mine[place] for mine, _ in pairs], [theirs[place] for _, theirs in pairs]
        yield duration(f"{NAME}.{name}", f"{about}; {message}", PEER, seconds)


def one_takeover(stage: Layout, holder: Holder) -> tuple[float, float]:
    """Delete the controller's znode under this controller; return the seconds from the deletion, and from the new znode."""
    stage.give_to(holder)
    stage.wait_until_in_sync()
    client = stage.cluster.zookeeper.client
    for log in stage.logs.values():
        log.mark()
    before = client.get(f"{CHROOT}/controller")[1].czxid
    deleted_s = time.time()
    client.delete(f"{CHROOT}/controller")
    notified_s: list[float] = []

    def all_notified() -> bool:
        successor = stage.cluster.controller_id()
        if successor is None or (holder is Holder.OURS) != (successor == stage.controller.controller_id):
            return False
        heard = [
            stage.logs[broker].stamps(HANDLING.format(controller=successor, partitions=stage.hosted(broker)))
            for broker in BROKERS
        ]
        notified_s[:] = [stamps[-1] for stamps in heard if stamps]
        return len(notified_s) == len(BROKERS)

    wait_until(all_notified, timeout_s=PATIENCE_S, what="every broker notified by the new controller")
    taken = client.get(f"{CHROOT}/controller")[1]
    assert taken.czxid > before, "a new controller znode"
    return max(notified_s) - deleted_s, max(notified_s) - taken.ctime / 1000
