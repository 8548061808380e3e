"""kill -9 of a broker that leads a thousand partitions: ours against a native controller on the same cluster (P3, small).

Three figures of each kill:
- from the kill to the last partition with another leader in ZooKeeper; most of it is the session time-out, which is the same;
- from the end of the victim's registration, as a client that watches it hears of it, to the same moment;
- the controller's own part. Ours: what its metric says of the turn of that event, from the brokers read to the last answer of
  ZooKeeper and every request in its channel. The native one: in its log, from "Newly added brokers: , deleted brokers: 4" (the
  brokers are read) to "Updated broker epochs cache" (its event is over), which covers the same.
Kills are slow (a broker comes back with a thousand logs), so rounds are few.
"""

import time
from collections.abc import Iterator

from bench.harness import Effort, Row, duration
from bench.layout import SESSION_TIMEOUT_MS, VICTIM, Gone, Holder, Layout, layout

NAME = "failover"
ABOUT = "kill -9 of the leader of 1,000 partitions, against a native controller (minutes)"

ROUNDS = 3
OWN_SUM = 'steward_controller_event_seconds_sum{event="BrokersRead"}'
NATIVE_BEGIN = rf"\[Controller id=\d+\] Newly added brokers: , deleted brokers: {VICTIM},"
NATIVE_END = r"\[Controller id=\d+\] Updated broker epochs cache"
PEER = "Kafka 3.9's controller, in a broker of the same cluster"

Figures = tuple[float, float, float]
"""Seconds: from the kill, from the registration's end, the own part."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield all rows at the end of the rounds."""
    with layout(quick=effort.quick) as stage:
        rounds = effort.runs(ROUNDS)
        pairs = [(one_kill(stage, Holder.OURS), one_kill(stage, Holder.NATIVE)) for _ in range(rounds)]
        about = f"kill -9 of the leader of {stage.partitions:,} partitions, RF 3, 4 brokers, session {SESSION_TIMEOUT_MS} ms"
    for place, (name, words) in enumerate(
        (
            ("whole", "from the kill to the last new leader in ZooKeeper"),
            ("after_session", "from the registration's end to the last new leader in ZooKeeper"),
            ("own_part", "the controller's own part: its event, brokers read to all written and told"),
        )
    ):
        seconds = [mine[place] for mine, _ in pairs], [theirs[place] for _, theirs in pairs]
        yield duration(f"{NAME}.{name}", f"{about}; {words}; {rounds} rounds, for kills are slow", PEER, seconds)


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
