"""The document of a what-if, from a snapshot and a scenario."""

from collections.abc import Iterator, Sequence

import numpy as np

from controller_core.model import NO_LEADER, BoolArray
from controller_core.views.state_schema import MAX_LISTED, Listing
from controller_core.views.what_if import schema
from controller_core.views.what_if.outage import Outage, outage_of
from controller_core.views.what_if.repair import Rate, RateSource, Repair, repair_of
from controller_core.views.what_if.scenario import Action, Scenario, listed_items
from controller_core.views.what_if.snapshot import UNKNOWN_MIN_ISR, BrokerState, Snapshot
from controller_core.views.what_if.spread import rack_names, spread_of, without_rack
from move_planner.request import LoadArray

STATES: dict[Action, schema.BrokerRole] = {Action.LOSE: "lost", Action.REMOVE: "removed", Action.DRAIN: "drained"}

ASSUMPTIONS = {
    Action.LOSE: "the brokers do not return; their replicas are copied to the brokers that remain",
    Action.REMOVE: "the brokers run until their replicas have moved",
    Action.DRAIN: "the brokers return with empty disks, as after the loss of local volumes; with their volumes, only new records are copied",
}

RATES = {
    RateSource.GIVEN: "as given",
    RateSource.THROTTLE: "the lowest throttle that is set on a broker",
    RateSource.DEFAULT: "an assumption: no rate is given and no throttle is set",
}


def what_if(snapshot: Snapshot, scenario: Scenario, rate: Rate, notes: Sequence[str] = ()) -> schema.WhatIfDocument:
    """Return the effects of a scenario; `notes` are those of the reader of the snapshot.

    ValueError for a cluster beyond the limits of the planner.
    """
    columns = snapshot.columns
    if scenario.action is Action.REMOVE:
        repair = repair_of(snapshot, scenario, columns.leader)
        outage = outage_of(snapshot, scenario, repair.replicas)
    else:
        outage = outage_of(snapshot, scenario, columns.replicas)
        repair = repair_of(snapshot, scenario, outage.leader)
    leaders = snapshot.count(columns.leader), snapshot.count(outage.leader)
    brokers = _brokers(snapshot, scenario, leaders, repair)
    known = [broker for broker in brokers if broker["over_capacity"] is not None]
    return {
        "scenario": {
            "action": scenario.action,
            "brokers": [snapshot.brokers[number].id for number in scenario.brokers],
            "description": scenario.description,
        },
        "cluster": {
            "brokers": sum(broker.live for broker in snapshot.brokers),
            "topics": len(columns.topics),
            "partitions": len(columns.topic),
            "reassigning": int((columns.replicas != columns.target).any(axis=1).sum()),
        },
        "brokers": brokers,
        "leaders_moved": int(((outage.leader != columns.leader) & (outage.leader != NO_LEADER)).sum()),
        "offline": _before_and_new(snapshot, outage.offline_before, outage.offline),
        "needs_unclean": _listing(snapshot, outage.needs_unclean),
        "no_replica_left": _listing(snapshot, outage.no_replica_left),
        "under_min_isr": _before_and_new(snapshot, outage.under_min_isr_before, outage.under_min_isr),
        "spread": _spread(snapshot, scenario, outage, leaders, repair),
        "repair": _repair(snapshot, scenario, repair, rate),
        "over_capacity": [broker["id"] for broker in known if broker["over_capacity"]] if known else None,
        "notes": [*notes, *_notes(snapshot, brokers)],
    }


def _brokers(
    snapshot: Snapshot, scenario: Scenario, leaders: tuple[LoadArray, LoadArray], repair: Repair
) -> list[schema.BrokerEffects]:
    """Return the effects on each broker; `leaders` are their numbers by broker, before and after."""
    columns, size = snapshot.columns, snapshot.columns.bytes
    replicas = snapshot.count(columns.replicas), snapshot.count(repair.replicas)
    held = None if size is None else (snapshot.count(columns.replicas, size), snapshot.count(repair.replicas, size))
    leaving = set(scenario.brokers)
    return [
        {
            "id": broker.id,
            "rack": broker.rack,
            "state": STATES[scenario.action] if number in leaving else "stays" if broker.live else "offline",
            "leaders_before": int(leaders[0][number]),
            "leaders_after": int(leaders[1][number]),
            "replicas_before": int(replicas[0][number]),
            "replicas_after": int(replicas[1][number]),
            "bytes_before": None if held is None else int(held[0][number]),
            "bytes_after": None if held is None else int(held[1][number]),
            "capacity_bytes": broker.capacity_bytes,
            **_disk(broker, None if held is None else int(held[1][number] - held[0][number])),
        }
        for number, broker in enumerate(snapshot.brokers)
    ]


def _disk(broker: BrokerState, more_bytes: int | None) -> schema.DiskEffects:
    """Return the state of a broker's disks after the repair; None if sizes or the free bytes are unknown."""
    if broker.free_bytes is None or more_bytes is None:
        return {"free_bytes_after": None, "over_capacity": None}
    after = broker.free_bytes - more_bytes
    return {"free_bytes_after": after, "over_capacity": more_bytes > 0 and after < 0}


def _before_and_new(snapshot: Snapshot, before: BoolArray, after: BoolArray) -> schema.Partitions:
    return {"before": _listing(snapshot, before), "new": _listing(snapshot, after & ~before)}


def _listing(snapshot: Snapshot, flags: BoolArray) -> Listing[str]:
    rows = np.flatnonzero(flags)
    columns = snapshot.columns
    names = [f"{columns.topics[columns.topic[row]]}-{columns.partition[row]}" for row in rows[:MAX_LISTED].tolist()]
    return {"in_all": len(rows), "listed": names}


def _spread(
    snapshot: Snapshot, scenario: Scenario, outage: Outage, leaders: tuple[LoadArray, LoadArray], repair: Repair
) -> schema.SpreadEffects | None:
    """Return the effects on racks; None where racks do not count."""
    racks = rack_names(snapshot)
    if without_rack(snapshot) or not racks:
        return None
    after_repair = snapshot.live if scenario.action is Action.DRAIN else outage.live
    spread = spread_of(snapshot, outage.live, outage.replicas, repair.replicas, after_repair)
    return {
        "racks": [
            {
                "rack": rack,
                "brokers_before": sum(snapshot.brokers[number].live for number in numbers),
                "brokers_after": int(outage.live[numbers].sum()),
                "leaders_before": int(leaders[0][numbers].sum()),
                "leaders_after": int(leaders[1][numbers].sum()),
            }
            for rack in racks
            for numbers in [[number for number, broker in enumerate(snapshot.brokers) if broker.rack == rack]]
        ],
        "fewer_racks": _listing(snapshot, spread.fewer),
        "fewer_racks_after_repair": _listing(snapshot, spread.fewer_after_repair),
    }


def _repair(snapshot: Snapshot, scenario: Scenario, repair: Repair, rate: Rate) -> schema.RepairEffects:
    left = np.zeros(len(snapshot.columns.topic), dtype=np.bool_)
    left[repair.left] = True
    return {
        "bytes": repair.copied_bytes,
        "replicas": repair.copied_replicas,
        "hours": repair.hours(rate),
        "rate_bytes_per_second": rate.bytes_per_second,
        "rate_source": rate.source,
        "assumption": f"{ASSUMPTIONS[scenario.action]}; each broker sends and receives at most the rate ({RATES[rate.source]})",
        "left": _listing(snapshot, left),
    }


def _notes(snapshot: Snapshot, brokers: Sequence[schema.BrokerEffects]) -> Iterator[str]:
    columns = snapshot.columns
    offline = [broker["id"] for broker in brokers if broker["state"] == "offline"]
    if offline:
        yield f"brokers {_ids(offline)} are offline already: their replicas are not copied"
    lacking = without_rack(snapshot)
    if lacking and rack_names(snapshot):
        yield f"racks are ignored: brokers {_ids(lacking)} have none (broker.rack)"
    elif lacking:
        yield "racks are unknown: no broker has one (broker.rack)"
    unknown = columns.min_isr == UNKNOWN_MIN_ISR
    if unknown.any():
        topics = len(np.unique(columns.topic[unknown]))
        yield f"min.insync.replicas of {topics} topics is unknown: their partitions do not count as under min.insync.replicas"
    if columns.bytes is None:
        yield "the sizes of logs are unknown: bytes, hours and disks over capacity are unknown"
    without = [broker["id"] for broker in brokers if broker["state"] == "stays" and broker["capacity_bytes"] is None]
    if without:
        yield f"the capacity of brokers {_ids(without)} is unknown: brokers report it from Kafka 3.3 on (KIP-827)"


def _ids(ids: Sequence[int]) -> str:
    return listed_items(ids, MAX_LISTED)
