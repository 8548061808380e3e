"""Scenarios of a what-if: brokers that are lost, removed or drained, by id or by rack.

A broker or rack that the cluster does not have raises ScenarioError; its message lists the known ones.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from controller_core.views.what_if.snapshot import Snapshot

MAX_KNOWN = 50
"""Known brokers or racks that a message lists: a line that a person can read."""


class ScenarioError(Exception):
    """The cluster does not have the broker or rack; the message lists those that it has."""


class Action(StrEnum):
    """How the brokers leave."""

    LOSE = "lose"
    """They fail at once, and do not return: their replicas are copied to the other brokers."""
    REMOVE = "remove"
    """Their replicas move to the other brokers while they run, as with a Reassignment with `goal.removeBrokers`."""
    DRAIN = "drain"
    """They shut down after their leaders have moved, and return later."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Brokers by number (see `Snapshot`), how they leave, and a description of the scenario."""

    action: Action
    brokers: tuple[int, ...]
    description: str


def lose_brokers(snapshot: Snapshot, ids: Collection[int]) -> Scenario:
    """Return the loss of brokers; ScenarioError for an unknown one."""
    return Scenario(Action.LOSE, _numbers(snapshot, ids), f"loss of {_named(ids)}")


def lose_rack(snapshot: Snapshot, rack: str) -> Scenario:
    """Return the loss of all brokers of a rack; ScenarioError for an unknown one."""
    numbers = tuple(number for number, broker in enumerate(snapshot.brokers) if broker.rack == rack)
    if not numbers:
        known = sorted({broker.rack for broker in snapshot.brokers if broker.rack is not None})
        which = f"Known racks: {listed_items(known)}." if known else "No broker has a rack (broker.rack)."
        raise ScenarioError(f"No broker is in rack {rack}. {which}")
    ids = [snapshot.brokers[number].id for number in numbers]
    return Scenario(Action.LOSE, numbers, f"loss of rack {rack}, {_named(ids)}")


def remove_brokers(snapshot: Snapshot, ids: Collection[int]) -> Scenario:
    """Return the removal of brokers; ScenarioError for an unknown one."""
    return Scenario(Action.REMOVE, _numbers(snapshot, ids), f"removal of {_named(ids)}")


def drain_brokers(snapshot: Snapshot, node: str, ids: Collection[int]) -> Scenario:
    """Return the drain of the node on which the pods of these brokers run; ScenarioError for an unknown broker."""
    return Scenario(Action.DRAIN, _numbers(snapshot, ids), f"drain of node {node}, {_named(ids)}")


def _numbers(snapshot: Snapshot, ids: Collection[int]) -> tuple[int, ...]:
    numbers = {broker.id: number for number, broker in enumerate(snapshot.brokers)}
    unknown = sorted(set(ids) - numbers.keys())
    if unknown:
        known = listed_items(numbers) if numbers else "none"
        raise ScenarioError(f"The cluster has no {_named(unknown)}. Known brokers: {known}.")
    return tuple(sorted(numbers[broker] for broker in set(ids)))


def _named(ids: Collection[int]) -> str:
    return f"broker{'s' if len(set(ids)) > 1 else ''} {listed_items(sorted(set(ids)))}"


def listed_items(items: Iterable[object], most: int = MAX_KNOWN) -> str:
    """Return items separated by commas, the first ones if there are more than `most`.

    >>> listed_items(range(52))[-27:]
    '46, 47, 48, 49 and 2 others'
    """
    every = list(items)
    listed = ", ".join(map(str, every[:most]))
    return listed if len(every) <= most else f"{listed} and {len(every) - most} others"
