"""Steps of Reassignments in addition to those of `steps.py`: storing a large plan, reading and changing a throttle."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.steps import AlterConfig


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Put plan and base into ConfigMaps of the Reassignment's own; `digest` is theirs together and names them."""

    recorded: Recorded
    digest: str


@dataclass(frozen=True, slots=True)
class ReadThrottle:
    """See what throttles are set on these brokers and topics."""

    broker_ids: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MakePlan:
    """Read the input of the planner, and compute the plan."""


@dataclass(frozen=True, slots=True)
class ThrottleInForce:
    """Remember that Kafka was seen with the identified throttle, so that it need not be read again."""

    seen_as: Hashable


@dataclass(frozen=True, slots=True)
class AlterBroker:
    """Set and reset settings of one broker, by name; None resets."""

    broker_id: int
    changes: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class AlterThrottle:
    """Change rates of brokers and lists of throttled replicas of topics."""

    brokers: tuple[AlterBroker, ...]
    topics: tuple[AlterConfig, ...]
