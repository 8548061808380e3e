"""A proposal as Kubernetes objects: a Reassignment that waits for approval, its plan, and the figures beside it.

The operator makes a Reassignment with `approval: Required` a proposal (state Proposed) with a digest of plan and base; nothing moves
until somebody names that digest in `spec.approvedDigest`. Small plans are in the Reassignment itself, large ones in ConfigMaps
(docs/reassignments.md), made by the same code as `steward plan configmaps`. The figures of every broker and resource are a ConfigMap
of their own: a status has room for bytes alone. Leaves out names of moments (the caller gives the name) and writing.
"""

from __future__ import annotations

import json
from typing import Any

from balance_analytics.moves.proposal import Proposal
from kafka_operator.decide.plan_document import Document, digest_of
from kafka_operator.decide.plan_packing import INLINE_PARTITIONS, packed_document

GROUP_VERSION = "steward.dev/v1alpha1"
MAX_CONFIG_MAPS = 32
"""spec.planFrom.configMaps takes no more."""

MAX_FIGURES_BYTES = 900_000
"""Of the ConfigMap of figures, within the 1 MiB of an object: some 1,500 brokers. Beyond that, brokers are left out of it."""

LABEL, PROPOSER = "steward.dev/proposed-by", "balance-analytics"
NAME_LENGTH = 200
"""Of the Cluster's name in a proposal's: with what follows it stays below the 253 characters of an object's name."""

DIGEST_CHARACTERS = 10
Manifest = dict[str, Any]


def proposal_name(proposal: Proposal, cluster: str, cluster_id: str | None = None) -> str:
    """Return the name of a proposal: the same moves from the same places have the same one, so that they are proposed once."""
    digest = digest_of(proposal.moves, base=proposal.base, cluster_id=cluster_id).partition(":")[2]
    return f"{_beginning(cluster)}{digest[:DIGEST_CHARACTERS]}"


def _beginning(cluster: str) -> str:
    return f"{cluster[:NAME_LENGTH].rstrip('-.')}-balance-"


def manifests(
    proposal: Proposal,
    *,
    name: str,
    namespace: str | None,
    cluster: str,
    cluster_id: str | None = None,
    approved: bool = False,
) -> list[Manifest]:
    """Return what is to be created, ConfigMaps first; nothing when nothing is to move.

    With `approved` the user has said beforehand that proposals are to be carried out at once.
    """
    if not proposal.moves:
        return []
    metadata: dict[str, Any] = {"labels": {LABEL: PROPOSER}} | ({"namespace": namespace} if namespace else {})
    spec: dict[str, Any] = {"clusterRef": {"name": cluster}, "approval": "Automatic" if approved else "Required"}
    parts: list[Manifest] = []
    if len(proposal.moves) <= INLINE_PARTITIONS:
        spec["plan"] = [move.to_json() for move in proposal.moves]
    else:
        document = Document(proposal.moves, cluster_id)
        parts = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-plan-{number}"} | metadata,
                "binaryData": data,
            }
            for number, data in enumerate(packed_document(document))
        ]
        if len(parts) > MAX_CONFIG_MAPS:
            raise ValueError(
                f"the plan takes {len(parts)} ConfigMaps, more than {MAX_CONFIG_MAPS}: set a budget of bytes"
            )
        names = [part["metadata"]["name"] for part in parts]
        spec["planFrom"] = {"configMaps": names, "digest": document.digest}
    figures = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-figures"} | metadata}
    figures["data"] = {"figures.json": _figures(proposal)}
    annotations = {"steward.dev/figures": f"{name}-figures", "steward.dev/promise": _promise(proposal)}
    reassignment = {
        "apiVersion": GROUP_VERSION,
        "kind": "Reassignment",
        "metadata": {"name": name, "annotations": annotations} | metadata,
        "spec": spec,
    }
    return [*parts, figures, reassignment]


def _figures(proposal: Proposal) -> str:
    figures = proposal.figures()
    text = json.dumps(figures, separators=(",", ":"))
    if len(text) <= MAX_FIGURES_BYTES:
        return text
    return json.dumps(figures | {"brokers": [], "brokersLeftOut": len(proposal.brokers)}, separators=(",", ":"))


def _promise(proposal: Proposal) -> str:
    """Say what the plan promises, in a line."""
    skew = ", ".join(
        f"{one.resource} {one.max_over_mean_before:.2f} to {one.max_over_mean_after:.2f}" for one in proposal.skew
    )
    return f"largest broker over the mean: {skew}; {proposal.copied_bytes} bytes copied, at least {proposal.lower_bound_bytes} needed"
