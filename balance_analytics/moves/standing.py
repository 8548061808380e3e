"""What becomes of a proposal beside those that are there: pure, over Reassignments as the API server shows them.

At most one proposal of ours waits for a Cluster. A newer one takes the place of an older one that nobody has approved, since the older
one's load is history. The same one again changes nothing, so that nobody who reads it has it taken away. While one is approved, or
is carried out, nothing new is proposed: its load is about to change. One that failed because a run was killed before it created the
plan's ConfigMaps is replaced. Leaves out Reassignments of others, and the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from balance_analytics.moves.manifests import LABEL, PROPOSER
from kafka_operator.resources.metadata import RawObject
from kafka_operator.resources.reassignment import State
from kafka_operator.resources.reassignment_terms import Approval

PLAN_MISSING = "ConfigMapNotFound"
"""Reason of the operator's Ready condition where a ConfigMap of `spec.planFrom` does not exist (kafka_operator.engine.plan_store)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An object in the version that was seen: that one is deleted, or none."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Create:
    """Have our proposal in the place of these, older ones that nobody has approved."""

    instead_of: tuple[Seen, ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Our proposal is there: the Reassignment of this uid; only what belongs to it may lack."""

    uid: str
    state: str


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Propose nothing: this Reassignment of ours is approved, and has not ended."""

    name: str


def decide_standing(found: Sequence[RawObject], name: str, cluster: str) -> Create | Keep | UnderWay:
    """Return what is to be done about the proposal `name` for a Cluster; `found` are all Reassignments of the namespace."""
    ours = [
        raw
        for raw in found
        if (raw["metadata"].get("labels") or {}).get(LABEL) == PROPOSER and raw["spec"]["clusterRef"]["name"] == cluster
    ]
    for raw in ours:
        if raw["metadata"]["name"] == name:
            if _lacks_its_plan(raw):
                return Create((_seen(raw["metadata"]),))
            return Keep(raw["metadata"]["uid"], _state(raw) or State.PROPOSED.value)
    going = [raw for raw in ours if not _ended(raw)]
    approved = next((raw["metadata"]["name"] for raw in going if _approved(raw)), None)
    if approved is not None:
        return UnderWay(approved)
    waiting = [raw["metadata"] for raw in going if "deletionTimestamp" not in raw["metadata"]]
    return Create(tuple(map(_seen, waiting)))


def _seen(metadata: RawObject) -> Seen:
    return Seen(metadata["name"], metadata["uid"], metadata["resourceVersion"])


def _approved(raw: RawObject) -> bool:
    """Say whether anybody has approved it, if only an earlier version: from then on it is its user's."""
    spec = raw["spec"]
    automatic = spec.get("approval") != Approval.REQUIRED.value
    return automatic or bool(spec.get("approvedDigest")) or _state(raw) not in {None, State.PROPOSED.value}


def _lacks_its_plan(raw: RawObject) -> bool:
    """Return whether the Reassignment failed because its ConfigMaps were never created."""
    conditions = (raw.get("status") or {}).get("conditions") or ()
    missing = any(one["type"] == "Ready" and one.get("reason") == PLAN_MISSING for one in conditions)
    return missing and _state(raw) == State.FAILED.value


def _ended(raw: RawObject) -> bool:
    state = _state(raw)
    return state is not None and state in {one.value for one in State if one.ended}


def _state(raw: RawObject) -> str | None:
    found: str | None = (raw.get("status") or {}).get("state")
    return found
