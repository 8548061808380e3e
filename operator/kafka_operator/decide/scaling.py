"""How many pods of brokers there may be: as many as are declared, but none fewer while those that would leave hold replicas.

The number that the operator stands for (`status.brokerReplicas`) follows the declared one upwards at once, downwards only when the
brokers to be removed hold nothing. A StatefulSet that somebody else has scaled is set back to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_operator.decide.copies import Copies, Health, held_by, named
from kafka_operator.decide.observed import Away
from kafka_operator.resources.pods import PodSet


@dataclass(frozen=True, slots=True)
class AskHolders:
    """Fewer are declared: look at the cluster."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Have so many pods."""

    replicas: int
    reason: str
    message: str

    @property
    def refused(self) -> bool:
        """Whether it is not what is declared."""
        return self.reason != "AsDeclared"


def decide_scale(
    declared: int, standing: int | None, pod_set: PodSet, health: Health | Away | None
) -> Scale | AskHolders:
    """Return how many pods there shall be.

    `standing` is the number stood for so far; at first, None, it is the StatefulSet's own.
    """
    before = pod_set.replicas if standing is None else standing
    if declared >= before:
        return Scale(declared, "AsDeclared", f"{declared} pods of brokers, as declared.")
    if health is None:
        return AskHolders()
    if isinstance(health, Away):
        words = f"Nothing is removed while the cluster cannot be asked. {health.message}"
        return Scale(before, health.reason, words)
    leaving = range(pod_set.first_id + declared, pod_set.first_id + before)
    held = held_by(health.copies, leaving)
    if held:
        return Scale(before, "ScaleInRefused", _refusal(before, declared, leaving, held))
    return Scale(declared, "AsDeclared", f"{declared} pods of brokers, as declared.")


def _refusal(before: int, declared: int, leaving: range, held: list[Copies]) -> str:
    by_broker = [(broker, held_by(held, {broker})) for broker in leaving]
    holders = "; ".join(f"broker {broker} holds {named(copies)}" for broker, copies in by_broker if copies)
    return (
        f"There stay {before} pods of brokers though {declared} are declared: {holders}. "
        "Move these replicas away with a Reassignment; the pods go by themselves then."
    )
