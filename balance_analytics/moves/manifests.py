"""Kubernetes objects of a proposal: a Reassignment that waits for approval, its plan, and its figures.

A Reassignment with `approval: Required` becomes a proposal (state Proposed) with a digest of plan and base; the operator moves nothing
until a user sets `spec.approvedDigest` to that digest. Small plans are in the Reassignment itself, large ones in ConfigMaps
(docs/reassignments.md), as `steward plan configmaps` creates them. The figures of brokers and resources are in another ConfigMap, as the
status contains only bytes.
"""

from __future__ import annotations

import json
from typing import Any

from balance_analytics.moves.proposal import Proposal
from kafka_operator.decide.plans.plan_document import Document, digest_of
from kafka_operator.decide.plans.plan_packing import INLINE_PARTITIONS, packed_document

GROUP_VERSION = "steward.dev/v1alpha1"
MAX_CONFIG_MAPS = 32
"""Limit of spec.planFrom.configMaps."""

MAX_FIGURES_BYTES = 900_000
"""Limit of the ConfigMap with figures, below the 1 MiB of an object: about 1,500 brokers. Beyond that it has no brokers."""

LABEL, PROPOSER = "steward.dev/proposed-by", "balance-analytics"
NAME_LENGTH = 200
"""Length of the Cluster's name in that of a proposal, which must be below the 253 characters of an object's name."""

DIGEST_CHARACTERS = 10
Manifest = dict[str, Any]


def proposal_name(proposal: Proposal, cluster: str, cluster_id: str | None = None) -> str:
    """Return the name of a proposal. It is the same for the same moves and base, so that these are proposed once."""
    digest = digest_of(proposal.moves, base=proposal.base, cluster_id=cluster_id).partition(":")[2]
    return f"{_prefix(cluster)}{digest[:DIGEST_CHARACTERS]}"


def _prefix(cluster: str) -> str:
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
    """Return the objects to create, the Reassignment last; an empty list without moves.

    With `approved` the Reassignment is executed without approval, as the user has configured.
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
                f"the plan needs {len(parts)} ConfigMaps, the limit is {MAX_CONFIG_MAPS}: set a budget of bytes"
            )
        names = [part["metadata"]["name"] for part in parts]
        spec["planFrom"] = {"configMaps": names, "digest": document.digest}
    figures = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-figures"} | metadata}
    figures["data"] = {"figures.json": _figures(proposal)}
    annotations = {"steward.dev/figures": f"{name}-figures", "steward.dev/expected-result": _expected_result(proposal)}
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


def _expected_result(proposal: Proposal) -> str:
    """Return a summary of the expected result, in one line."""
    skew = ", ".join(
        f"{skew.resource} {skew.max_over_mean_before:.2f} to {skew.max_over_mean_after:.2f}" for skew in proposal.skew
    )
    return f"largest broker over the mean: {skew}; {proposal.copied_bytes} bytes copied, at least {proposal.lower_bound_bytes} needed"
