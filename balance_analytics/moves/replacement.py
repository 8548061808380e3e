"""Replacement of older proposals: whether to create a proposal, keep the existing one, or propose nothing.

Pure, from the Reassignments of a namespace. The analytics have at most one proposal per Cluster:

- A proposal that is not approved is replaced by a newer one, as its loads are outdated.
- A proposal with the same moves is kept, so that a user can finish reading it.
- While a proposal is approved and has not ended, no other is created: it will change the loads.
- A proposal that failed because a run was killed before it created the plan's ConfigMaps is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from balance_analytics.moves.manifests import LABEL, PROPOSER
from kafka_operator.resources.reassignment import State
from kafka_operator.resources.reassignment_terms import Approval
from reconciler.resources.metadata import RawObject

PLAN_MISSING = "ConfigMapNotFound"
"""Reason of the operator's Ready condition if a ConfigMap of `spec.planFrom` does not exist (kafka_operator.engine.plan_store)."""


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """An object in the version that was read; only this version may be deleted."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Create:
    """Delete these older proposals, which are not approved, and create the new one."""

    replaces: tuple[ObjectVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the existing Reassignment of this uid; create only ConfigMaps that it lacks."""

    uid: str
    state: str


@dataclass(frozen=True, slots=True)
class InProgress:
    """Propose nothing: this Reassignment of the analytics is approved and has not ended."""

    name: str


def decide_replacement(found: Sequence[RawObject], name: str, cluster: str) -> Create | Keep | InProgress:
    """Return what to do with the proposal `name` for a Cluster; `found` are all Reassignments of the namespace."""
    proposals = [
        raw
        for raw in found
        if (raw["metadata"].get("labels") or {}).get(LABEL) == PROPOSER and raw["spec"]["clusterRef"]["name"] == cluster
    ]
    for raw in proposals:
        if raw["metadata"]["name"] == name:
            if _lacks_its_plan(raw):
                return Create((_version_of(raw["metadata"]),))
            return Keep(raw["metadata"]["uid"], _state(raw) or State.PROPOSED.value)
    active = [raw for raw in proposals if not _ended(raw)]
    approved = next((raw["metadata"]["name"] for raw in active if _approved(raw)), None)
    if approved is not None:
        return InProgress(approved)
    waiting = [raw["metadata"] for raw in active if "deletionTimestamp" not in raw["metadata"]]
    return Create(tuple(map(_version_of, waiting)))


def _version_of(metadata: RawObject) -> ObjectVersion:
    return ObjectVersion(metadata["name"], metadata["uid"], metadata["resourceVersion"])


def _approved(raw: RawObject) -> bool:
    """Return whether a user has approved it, even if an earlier version of it: then it must not be deleted."""
    spec = raw["spec"]
    automatic = spec.get("approval") != Approval.REQUIRED.value
    return automatic or bool(spec.get("approvedDigest")) or _state(raw) not in {None, State.PROPOSED.value}


def _lacks_its_plan(raw: RawObject) -> bool:
    """Return whether the Reassignment failed because its ConfigMaps were never created."""
    conditions = (raw.get("status") or {}).get("conditions") or ()
    missing = any(condition["type"] == "Ready" and condition.get("reason") == PLAN_MISSING for condition in conditions)
    return missing and _state(raw) == State.FAILED.value


def _ended(raw: RawObject) -> bool:
    state = _state(raw)
    return state is not None and state in {ended_state.value for ended_state in State if ended_state.ended}


def _state(raw: RawObject) -> str | None:
    found: str | None = (raw.get("status") or {}).get("state")
    return found
