"""Changes of Reassignments and Clusters, and whether they are approvals: for the operator's rules and for the chart's policies."""

from typing import Any

Spec = dict[str, Any]

DIGEST, OTHER_DIGEST = ("sha256:" + digit * 64 for digit in "ab")
GOAL: Spec = {"goal": {"rebalance": True}}
PLAN: Spec = {"plan": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}


def canary(**fields: object) -> Spec:
    """An exact plan, which runs without approval, with a canary of one partition."""
    return {**PLAN, "canary": {"partitions": 1, **fields}}


REASSIGNMENTS: dict[str, tuple[Spec | None, Spec, bool]] = {
    "a goal is created": (None, GOAL, False),
    "a goal is created with approval": (None, {**GOAL, "approval": "Automatic"}, True),
    "a goal is created with a digest": (None, {**GOAL, "approvedDigest": DIGEST}, True),
    "an exact plan is created": (None, PLAN, True),
    "an exact plan is created that waits": (None, {**PLAN, "approval": "Required"}, False),
    "a digest is set": (GOAL, {**GOAL, "approvedDigest": DIGEST}, True),
    "a digest is changed": ({**GOAL, "approvedDigest": DIGEST}, {**GOAL, "approvedDigest": OTHER_DIGEST}, True),
    "a digest is removed": ({**GOAL, "approvedDigest": DIGEST}, GOAL, False),
    "a goal becomes automatic": (GOAL, {**GOAL, "approval": "Automatic"}, True),
    "an exact plan no longer waits": ({**PLAN, "approval": "Required"}, PLAN, True),
    "an automatic plan": (PLAN, {**PLAN, "approval": "Automatic"}, False),
    "an automatic plan is made to wait": (PLAN, {**PLAN, "approval": "Required"}, False),
    "another field of an approved one is changed": (
        {**GOAL, "approvedDigest": DIGEST},
        {**GOAL, "approvedDigest": DIGEST, "throttle": {"bytesPerSecond": 5}},
        False,
    ),
    "a goal is created with an approved canary": (
        None,
        {**GOAL, "canary": canary(approvedDigest=DIGEST)["canary"]},
        True,
    ),
    "a canary is approved": (canary(), canary(approvedDigest=DIGEST), True),
    "another digest of a canary is approved": (
        canary(approvedDigest=DIGEST),
        canary(approvedDigest=OTHER_DIGEST),
        True,
    ),
    "the approval of a canary is removed": (canary(approvedDigest=DIGEST), canary(), False),
    "a canary becomes automatic": (canary(), canary(approval="Automatic"), True),
    "a canary is removed": (canary(), PLAN, True),
    "a canary becomes larger": (canary(), canary(partitions=2), True),
    "an automatic canary is removed": (canary(approval="Automatic"), PLAN, False),
    "an automatic canary becomes larger": (
        canary(approval="Automatic"),
        canary(approval="Automatic", partitions=2),
        False,
    ),
    "an automatic canary is made to wait": (canary(approval="Automatic"), canary(), False),
    "a canary is added": (PLAN, canary(), False),
    "the soak time of a canary is changed": (canary(), canary(soakSeconds=5), False),
    "the throttle of an approved canary is changed": (
        canary(approvedDigest=DIGEST),
        {**canary(approvedDigest=DIGEST), "throttle": {"bytesPerSecond": 5}},
        False,
    ),
    "an approved one is rolled back": (
        {**GOAL, "approvedDigest": DIGEST},
        {**GOAL, "approvedDigest": DIGEST, "action": "Rollback"},
        False,
    ),
}
"""What happens -> spec before (None for a creation), spec after, whether it is an approval."""

CLUSTERS: dict[str, tuple[Spec | None, Spec, bool]] = {
    "a cluster is created": (None, {}, False),
    "rebalances wait by default": (None, {"autoRebalance": {"onBrokersAdded": True}}, False),
    "a cluster is created with approval": (
        None,
        {"autoRebalance": {"onBrokersAdded": True, "approval": "Automatic"}},
        True,
    ),
    "rebalances become automatic": (
        {"autoRebalance": {"onBrokersAdded": True}},
        {"autoRebalance": {"onBrokersAdded": True, "approval": "Automatic"}},
        True,
    ),
    "automatic rebalances are changed": (
        {"autoRebalance": {"onBrokersAdded": True, "approval": "Automatic"}},
        {"autoRebalance": {"onBrokersRemoved": True, "approval": "Automatic"}},
        False,
    ),
    "automatic rebalances are switched off": (
        {"autoRebalance": {"onBrokersAdded": True, "approval": "Automatic"}},
        {},
        False,
    ),
}

RBAC = "rbac.authorization.k8s.io"


def role(user: str, namespace: str, *verbs: str) -> list[dict[str, Any]]:
    """A Role to write Reassignments and Clusters, with further verbs, bound to one user of its name."""
    rules = [
        {
            "apiGroups": ["steward.dev"],
            "resources": ["reassignments", "clusters"],
            "verbs": ["get", "create", "update", "patch", *verbs],
        }
    ]
    metadata = {"name": user, "namespace": namespace}
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        },
    ]
