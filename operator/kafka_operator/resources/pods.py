"""Pods of a StatefulSet and their nodes, as values: the input of rolling replacement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.resources.metadata import READY, RawObject, read_time

REVISION_LABEL = "controller-revision-hash"
"""Set by the StatefulSet controller (apps/v1, StatefulSetRevisionLabel)."""

ON_DELETE = "OnDelete"

DRAIN_TAINTS = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"})
"""Taints that autoscalers set on a node before its removal, if they do not cordon it."""


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a StatefulSet."""

    name: str
    uid: str
    resource_version: str
    node_id: int
    """Its id in Kafka."""
    revision: str
    node: str
    """The Kubernetes node that it runs on, empty while it has none."""
    ready: bool
    deleting: bool
    since: datetime
    """Since when it has been ready or not ready, or when it should have been deleted."""

    @property
    def unavailable(self) -> bool:
        """Whether it is not ready, or is being deleted."""
        return self.deleting or not self.ready


@dataclass(frozen=True, slots=True)
class PodSet:
    """A StatefulSet and its pods, ascending by id."""

    name: str
    resource_version: str
    first_id: int
    replicas: int
    update_revision: str
    on_delete: bool
    """Whether the operator has to replace pods of an old revision (OnDelete)."""
    observed: bool
    """Whether its controller has observed the current generation; before that its revision may be the previous one."""
    pods: tuple[Pod, ...]


def read_pod_set(raw: RawObject, pods: Iterable[RawObject], first_id: int) -> PodSet:
    """Read a StatefulSet and those of the pods that are its own; KeyError or ValueError when they are malformed."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    own = [pod for pod in pods if _owned_by(pod, metadata["uid"])]
    return PodSet(
        name=metadata["name"],
        resource_version=metadata["resourceVersion"],
        first_id=first_id,
        replicas=int(spec.get("replicas", 1)),
        update_revision=status.get("updateRevision", ""),
        on_delete=(spec.get("updateStrategy") or {}).get("type") == ON_DELETE,
        observed=status.get("observedGeneration") == metadata.get("generation"),
        pods=tuple(sorted((_read_pod(pod, first_id) for pod in own), key=lambda pod: pod.node_id)),
    )


def labels_of(raw: RawObject) -> Mapping[str, str]:
    """Return the labels of a StatefulSet itself."""
    return dict(raw["metadata"].get("labels") or {})


def selector_of(raw: RawObject) -> Mapping[str, str]:
    """Return the labels that a StatefulSet's pods have."""
    return dict(raw["spec"]["selector"].get("matchLabels") or {})


def drain_of(node: RawObject) -> str | None:
    """Return why a node is to be drained, None when it is not."""
    spec = node["spec"]
    if spec.get("unschedulable"):
        return "it is cordoned"
    taints = sorted(taint["key"] for taint in spec.get("taints") or () if taint["key"] in DRAIN_TAINTS)
    return f"it has the taint {taints[0]}" if taints else None


def _owned_by(pod: RawObject, uid: str) -> bool:
    return any(
        owner.get("controller") and owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or ()
    )


def _read_pod(raw: RawObject, first_id: int) -> Pod:
    metadata, status = raw["metadata"], raw.get("status") or {}
    ready = next((item for item in status.get("conditions") or () if item["type"] == READY), None)
    since = metadata["creationTimestamp"] if ready is None else ready.get("lastTransitionTime")
    deleted = metadata.get("deletionTimestamp")
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        node_id=first_id + int(metadata["name"].rpartition("-")[2]),
        revision=(metadata.get("labels") or {}).get(REVISION_LABEL, ""),
        node=raw["spec"].get("nodeName", ""),
        ready=ready is not None and ready["status"] == "True",
        deleting=deleted is not None,
        since=read_time(deleted or since or metadata["creationTimestamp"]),
    )
