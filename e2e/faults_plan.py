"""Faults of a round of chaos, drawn only from a seed: the same seed draws the same faults, for any cluster.

Targets are drawn as numbers; the pod of a number is chosen when the fault starts, because it depends on the pods at that moment.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of faults."""

    KILL = "kill -9"
    PAUSE = "freeze"
    CUT = "cut off"
    FILL = "fill the disk of"


class Target(StrEnum):
    """Kinds of targets."""

    BROKER = "broker"
    CONTROLLER = "controller"
    ZOOKEEPER = "zookeeper"
    OPERATOR = "operator"
    API_SERVER = "api server"


POSSIBLE: Sequence[tuple[Kind, Target]] = (
    (Kind.KILL, Target.BROKER),
    (Kind.KILL, Target.CONTROLLER),
    (Kind.KILL, Target.ZOOKEEPER),
    (Kind.KILL, Target.OPERATOR),
    (Kind.KILL, Target.API_SERVER),
    (Kind.PAUSE, Target.BROKER),
    (Kind.PAUSE, Target.CONTROLLER),
    (Kind.PAUSE, Target.ZOOKEEPER),
    (Kind.CUT, Target.BROKER),
    (Kind.CUT, Target.CONTROLLER),
    (Kind.CUT, Target.ZOOKEEPER),
    (Kind.FILL, Target.BROKER),
)

RESTARTING = {Kind.KILL, Kind.FILL}
"""Faults after which the kubelet starts a container again, in its own time."""

LENGTHS_S = (1.0, 4.0, 9.0, 14.0)
"""Shorter than a session of 6 s, about one, and longer than two: the session is then valid, about to expire, or expired."""

MOST_AT_ONCE = 2

REPLICATED = {Target.BROKER, Target.ZOOKEEPER}
"""Kinds of which only one may have a fault at a time: no promise holds with two of three down."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault."""

    kind: Kind
    target: Target
    number: int
    """Which of the target's pods, modulo how many there are; a controller is always the active one when it is even."""
    after_s: float
    """Seconds after the one before."""
    length_s: float
    """Duration; a kill lasts until the kubelet restarts the container."""

    def __str__(self) -> str:
        lasting = "" if self.kind is Kind.KILL else f" for {self.length_s:g} s"
        return f"{self.kind} {self.target} {self.number}{lasting}"


def draw_round(seed: int, number: int) -> list[Fault]:
    """Return the faults of one round."""
    chance = random.Random(f"{seed}/{number}")
    faults: list[Fault] = []
    for _ in range(chance.randint(1, MOST_AT_ONCE)):
        hurt = {fault.target for fault in faults} & REPLICATED
        kind, target = chance.choice([fault for fault in POSSIBLE if fault[1] not in hurt])
        faults.append(Fault(kind, target, chance.randrange(6), chance.uniform(0.0, 3.0), chance.choice(LENGTHS_S)))
    return faults
