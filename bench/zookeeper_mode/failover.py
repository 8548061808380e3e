"""kill -9 of a broker that leads a thousand partitions: Steward and a native controller on the same cluster (P3, small).

Three figures of each kill:
- from the kill to the last partition with another leader in ZooKeeper; most of it is the session timeout, which is equal for both;
- from the end of the victim's registration, as a client with a watch sees it, to the same moment;
- the controller's own part. Steward: its metric of that event, from reading the brokers to the last answer of ZooKeeper, with every
  request in its channel. The native controller: in its log, from "Newly added brokers: , deleted brokers: 4" (the brokers are read) to
  "Updated broker epochs cache" (its event has ended), which covers the same work.
Kills are slow (a broker restarts with a thousand logs), so there are few rounds.
"""

import time
from collections.abc import Iterator

from bench.harness import Effort, Row, duration
from bench.zookeeper_mode.layout import SESSION_TIMEOUT_MS, VICTIM, Gone, Holder, Layout, layout

NAME = "failover"
ABOUT = "kill -9 of the leader of 1,000 partitions, compared with a native controller (minutes)"

ROUNDS = 3
OWN_SUM = 'steward_controller_event_seconds_sum{event="BrokersRead"}'
NATIVE_BEGIN = rf"\[Controller id=\d+\] Newly added brokers: , deleted brokers: {VICTIM},"
NATIVE_END = r"\[Controller id=\d+\] Updated broker epochs cache"
PEER = "Kafka 3.9's controller, in a broker of the same cluster"

Figures = tuple[float, float, float]
"""Seconds: from the kill, from the registration's end, the own part."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield all rows after the last round."""
    with layout(quick=effort.quick) as stage:
        rounds = effort.runs(ROUNDS)
        pairs = [(one_kill(stage, Holder.OURS), one_kill(stage, Holder.NATIVE)) for _ in range(rounds)]
        about = f"kill -9 of the leader of {stage.partitions:,} partitions, RF 3, 4 brokers, session {SESSION_TIMEOUT_MS} ms"
    for place, (name, message) in enumerate(
        (
            ("whole", "from the kill to the last new leader in ZooKeeper"),
            ("after_session", "from the registration's end to the last new leader in ZooKeeper"),
            (
                "own_part",
                "the controller's own part: its event, from the read of brokers to the last write and request",
            ),
        )
    ):
        seconds = [mine[place] for mine, _ in pairs], [theirs[place] for _, theirs in pairs]
        yield duration(f"{NAME}.{name}", f"{about}; {message}; {rounds} rounds, for kills are slow", PEER, seconds)


def one_kill(stage: Layout, holder: Holder) -> Figures:
    """Kill the victim under this controller."""
    controller_id = stage.prepare(holder)
    registration = Gone(stage, f"/brokers/ids/{VICTIM}")
    before = stage.controller.metric(OWN_SUM) or 0.0
    if holder is Holder.NATIVE:
        stage.logs[controller_id].mark()
    killed_s = time.time()
    stage.cluster.broker(VICTIM).kill()
    gone_s = registration.at_s()
    led_s = stage.wait_until_led_by_others()
    if holder is Holder.OURS:
        own = (stage.controller.metric(OWN_SUM) or 0.0) - before
    else:
        begin, end = (stage.logs[controller_id].stamps(pattern) for pattern in (NATIVE_BEGIN, NATIVE_END))
        own = end[-1] - begin[0]
    return led_s - killed_s, led_s - gone_s, own
