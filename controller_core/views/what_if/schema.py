"""Schema of the document of a what-if (a JSON object), for its builder and for programs that print it (`docs/what-if.md`).

A listing of partitions has their number and the names of the first ones, at most `MAX_LISTED` of `state_schema`. A value is null where it is
unknown; `notes` then state the reason.
"""

from typing import Literal, TypedDict

from controller_core.views.state_schema import Listing
from controller_core.views.what_if.repair import RateSource
from controller_core.views.what_if.scenario import Action

BrokerRole = Literal["stays", "lost", "removed", "drained", "offline"]
"""`offline`: the broker is not live, and not part of the scenario."""


class ScenarioDocument(TypedDict):
    """The brokers that leave, how they leave, and a description of the scenario."""

    action: Action
    brokers: list[int]
    description: str


class ClusterCounts(TypedDict):
    """Size of the cluster; `reassigning` are partitions that are being reassigned now."""

    brokers: int
    topics: int
    partitions: int
    reassigning: int


class DiskEffects(TypedDict):
    """Disks of a broker after the repair."""

    free_bytes_after: int | None
    """Free bytes of its disks after the repair; negative if they are too small."""
    over_capacity: bool | None
    """Whether the replicas that it takes need more than the free bytes of its disks."""


class BrokerEffects(DiskEffects):
    """One broker before and after, `after` for bytes and replicas being the state after the repair."""

    id: int
    rack: str | None
    state: BrokerRole
    leaders_before: int
    leaders_after: int
    replicas_before: int
    replicas_after: int
    bytes_before: int | None
    bytes_after: int | None
    capacity_bytes: int | None
    """Size of all its disks (KIP-827, Kafka 3.3)."""


class Partitions(TypedDict):
    """Partitions in a state: those before the scenario, and those that the scenario adds."""

    before: Listing[str]
    new: Listing[str]


class RackEffects(TypedDict):
    """One rack: live brokers and leaders, before and after."""

    rack: str
    brokers_before: int
    brokers_after: int
    leaders_before: int
    leaders_after: int


class SpreadEffects(TypedDict):
    """Racks, partitions in fewer racks than before, and those that stay in fewer racks after the repair."""

    racks: list[RackEffects]
    fewer_racks: Listing[str]
    fewer_racks_after_repair: Listing[str]


class RepairEffects(TypedDict):
    """Copies of the repair; `left` are partitions that keep a replica on a broker that leaves."""

    bytes: int | None
    replicas: int
    hours: float | None
    rate_bytes_per_second: int
    rate_source: RateSource
    assumption: str
    left: Listing[str]


class WhatIfDocument(TypedDict):
    """Effects of a scenario."""

    scenario: ScenarioDocument
    cluster: ClusterCounts
    brokers: list[BrokerEffects]
    leaders_moved: int
    offline: Partitions
    needs_unclean: Listing[str]
    """Partitions that are offline afterwards and have a live replica out of sync."""
    no_replica_left: Listing[str]
    """Partitions that are offline afterwards and have no live replica."""
    under_min_isr: Partitions
    spread: SpreadEffects | None
    repair: RepairEffects
    over_capacity: list[int] | None
    """Ids of brokers whose disks are too small for the repair; null if no capacity is known."""
    notes: list[str]
