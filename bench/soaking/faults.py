"""Faults of a broker or the controller: it dies, shuts down, freezes or loses its session, and returns after a while.

Each fault is drawn completely before it starts, so that a seed determines the faults and their order; a seed does not determine what the
cluster does at that moment.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.peers.cluster import KafkaCluster
from lab.peers.steward import StewardController

LONGEST_S = 9.0
"""Longer than every session timeout here: three seconds for brokers, six for the controller."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `begin`, some seconds, `end`."""

    description: str
    lasts_s: float
    begin: Callable[[], object]
    end: Callable[[], object]


def draw(source: random.Random, cluster: KafkaCluster, controller: StewardController) -> Sequence[Fault]:
    """Draw the faults of one round: mostly one fault, sometimes one of a broker and one of the controller."""
    of_broker = _of_broker(source, cluster)
    of_controller = _of_controller(source, cluster, controller)
    return source.choices([[of_broker], [of_controller], [of_broker, of_controller], []], weights=[50, 30, 15, 5], k=1)[
        0
    ]


def _of_broker(source: random.Random, cluster: KafkaCluster) -> Fault:
    broker = cluster.broker(source.choice(sorted(cluster.brokers)))
    kind, lasts_s = source.choice(("kill -9", "SIGTERM", "SIGSTOP")), round(source.uniform(0.2, LONGEST_S), 1)
    message = f"{kind} of broker {broker.broker_id} for at least {lasts_s} s"
    begin, end = {
        "kill -9": (broker.kill, broker.start),
        "SIGTERM": (broker.stop, broker.start),
        "SIGSTOP": (broker.pause, broker.resume),
    }[kind]
    return Fault(message, lasts_s, begin, end)


def _of_controller(source: random.Random, cluster: KafkaCluster, controller: StewardController) -> Fault:
    kind, lasts_s = (
        source.choice(("kill -9", "SIGTERM", "SIGSTOP", "loss of the place")),
        round(source.uniform(0.2, LONGEST_S), 1),
    )
    message = f"{kind} of the controller for at least {lasts_s} s"
    place = f"{cluster.chroot}/controller"
    begin, end = {
        "kill -9": (controller.kill, controller.start),
        "SIGTERM": (controller.stop, controller.start),
        "SIGSTOP": (controller.pause, controller.resume),
        "loss of the place": (lambda: cluster.zookeeper.client.delete(place), lambda: None),
    }[kind]
    return Fault(message, lasts_s, begin, end)
