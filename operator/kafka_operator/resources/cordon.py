"""Cordons of brokers in the status of a Cluster: what the operator may have set on each broker, and what was set before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconciler.resources.metadata import RawObject


@dataclass(frozen=True, slots=True)
class Cordon:
    """A broker that the operator may have cordoned.

    `before` is the value that the broker's own setting had before, None if it was not set; `in_force` whether Kafka was seen with the cordon.
    """

    broker_id: int
    before: str | None = None
    in_force: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        before = {} if self.before is None else {"before": self.before}
        return {"id": self.broker_id, "inForce": self.in_force, **before}


def read_cordons(raw: Iterable[RawObject] | None) -> tuple[Cordon, ...]:
    """Read `status.cordons`."""
    return tuple(Cordon(int(item["id"]), item.get("before"), bool(item.get("inForce"))) for item in raw or ())
