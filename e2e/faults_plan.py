"""What goes wrong in a round of chaos, drawn from a seed alone: the same seed draws the same faults, whatever the cluster is.

Targets are drawn as numbers; which pod a number means is decided when the fault comes, as it depends on who is there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What may go wrong."""

    KILL = "kill -9"
    PAUSE = "freeze"
    CUT = "cut off"
    FILL = "fill the disk of"


class Target(StrEnum):
    """Whom it may happen to."""

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
"""Shorter than a session of 6 s, about one, and longer than two: who comes back finds its place kept, contested or taken."""

MOST_AT_ONCE = 2

REPLICATED = {Target.BROKER, Target.ZOOKEEPER}
"""Of each of these one may be hurt at a time: with two of three away no promise holds."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong."""

    kind: Kind
    target: Target
    number: int
    """Which of the target's pods, modulo how many there are; a controller is always the active one when it is even."""
    after_s: float
    """Seconds after the one before."""
    length_s: float
    """How long it holds; of a kill the kubelet decides."""

    def __str__(self) -> str:
        lasting = "" if self.kind is Kind.KILL else f" for {self.length_s:g} s"
        return f"{self.kind} {self.target} {self.number}{lasting}"


def draw_round(seed: int, number: int) -> list[Fault]:
    """Return the faults of one round."""
    chance = random.Random(f"{seed}/{number}")
    faults: list[Fault] = []
    for _ in range(chance.randint(1, MOST_AT_ONCE)):
        hurt = {fault.target for fault in faults} & REPLICATED
        kind, target = chance.choice([one for one in POSSIBLE if one[1] not in hurt])
        faults.append(Fault(kind, target, chance.randrange(6), chance.uniform(0.0, 3.0), chance.choice(LENGTHS_S)))
    return faults
