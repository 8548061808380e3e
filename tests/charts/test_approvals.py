"""The right to approve: the chart's ValidatingAdmissionPolicies and roles on a real API server, asked by users with and without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until
from tests.charts.rendering import NAMESPACE, TIMEOUT_S, Chart, one, served_namespaces
from tests.charts.rights import granted
from tests.kafka_operator.approvals import CLUSTERS, DIGEST, GOAL, PLAN, REASSIGNMENTS, Spec, role

pytestmark = [pytest.mark.helm, pytest.mark.kubernetes]

PREFIX = f"{NAMESPACE}-steward-approve"
EDITOR, APPROVER = "editor", "approver"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:steward-operator"

REFUSAL = "User editor is not allowed to approve Reassignments: this needs the verb approve on reassignments.steward.dev in namespace kafka. "


@dataclass
class Users:
    """Requests of users, who are impersonated by the admin of the lab: RBAC and policies apply as for themselves."""

    api: KubernetesApi

    def refusal(self, user: str, kind: str, name: str, spec: Spec, *options: str) -> str:
        """Apply a resource on the server's side; return the message of the refusal, empty when it was admitted."""
        if kind == "Reassignment":
            spec = {"clusterRef": {"name": "main"}, **spec}
        else:
            spec = {"bootstrapServers": ["kafka:9092"], **spec}
        raw = {
            "apiVersion": "steward.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        arguments = ("apply", "--server-side", "--force-conflicts", f"--as={user}", "--filename=-", *options)
        done = self.api.kubectl(*arguments, stdin=json.dumps(raw))
        return done.stderr if done.returncode else ""

    def may_approve(self, user: str) -> bool:
        """Return what the API server's authorizer answers."""
        done = self.api.kubectl(
            "auth", "can-i", "approve", "reassignments.steward.dev", f"--namespace={NAMESPACE}", f"--as={user}"
        )
        return done.stdout.strip() == "yes"


@pytest.fixture(scope="module")
def users(chart: Chart, api: KubernetesApi) -> Iterator[Users]:
    """The chart's policies and the operator's account in force; an editor, who may write, and an approver, who may approve as well."""
    rendered = chart.render()
    wanted = {(kind, f"{PREFIX}{suffix}") for kind, suffix in POLICY_OBJECTS}
    found = [item for item in rendered if (item["kind"], item["metadata"]["name"]) in wanted]
    found += [item for item in rendered if item["metadata"]["name"] == "steward-operator" and "Role" in item["kind"]]
    assert len(found) == len(wanted) + 2
    found += role(EDITOR, NAMESPACE) + role(APPROVER, NAMESPACE, "approve")
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
    api.kubectl("apply", "--filename=-", stdin=text, check=True)
    users = Users(api)

    def in_force() -> bool:
        automatic = CLUSTERS["a cluster is created with approval"][1]
        return bool(
            users.refusal(EDITOR, "Reassignment", "probe", PLAN, "--dry-run=server")
            and users.refusal(EDITOR, "Cluster", "probe", automatic, "--dry-run=server")
        )

    wait_until(in_force, timeout_s=TIMEOUT_S, what="the policies are in force")
    yield users
    api.kubectl("delete", "reassignments,clusters.steward.dev", "--all", f"--namespace={NAMESPACE}", check=True)
    api.kubectl("delete", "--filename=-", stdin=text, check=True)


POLICY_OBJECTS = [
    *(
        (kind, f"-{resource}")
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
        for resource in ("reassignments", "clusters")
    ),
]


@pytest.mark.shows("E19")
def test_a_user_without_the_right_is_refused_exactly_the_approvals(users: Users) -> None:
    """Every change of the table that the operator's own rules are tested with; a user with the right may make each of these."""
    answers: dict[str, bool] = {}
    allowed: dict[str, str] = {}
    for kind, cases in (("Reassignment", REASSIGNMENTS), ("Cluster", CLUSTERS)):
        for number, (what, (before, after, approval)) in enumerate(cases.items()):
            name = f"case-{number}"
            if before is not None:
                assert users.refusal(APPROVER, kind, name, before) == "", what
            answers[what] = bool(users.refusal(EDITOR, kind, name, after, "--dry-run=server"))
            if approval:
                allowed[what] = users.refusal(APPROVER, kind, name, after, "--dry-run=server")

    assert answers == {what: approval for what, (_, _, approval) in (REASSIGNMENTS | CLUSTERS).items()}
    assert set(allowed.values()) == {""}


@pytest.mark.shows("E19")
def test_the_refusal_names_the_right_and_what_to_do(users: Users) -> None:
    """For a plan that would run at once, for a digest, for a canary, and for a Cluster."""
    assert users.refusal(APPROVER, "Reassignment", "proposed", GOAL) == ""
    automatic = users.refusal(EDITOR, "Reassignment", "new", PLAN)
    digest = users.refusal(EDITOR, "Reassignment", "proposed", {**GOAL, "approvedDigest": DIGEST})
    canary = users.refusal(
        EDITOR, "Reassignment", "proposed", {**GOAL, "canary": {"partitions": 1, "approvedDigest": DIGEST}}
    )
    cluster = users.refusal(EDITOR, "Cluster", "new", CLUSTERS["a cluster is created with approval"][1])

    assert (
        f"{REFUSAL}Set spec.approval to Required, and ask a user with this right to set spec.approvedDigest."
        in automatic
    )
    assert f"{REFUSAL}Ask a user with this right to set spec.approvedDigest." in digest
    assert (
        f"{REFUSAL}Leave spec.canary as it is, and ask a user with this right to set spec.canary.approvedDigest."
        in canary
    )
    assert (
        f"{REFUSAL}Set spec.autoRebalance.approval to Required, or ask a user with this right to set Automatic."
        in cluster
    )
    assert users.refusal(APPROVER, "Reassignment", "proposed", {**GOAL, "approvedDigest": DIGEST}) == ""


def test_the_operator_may_approve_what_it_creates_for_topics_and_clusters(users: Users, api: KubernetesApi) -> None:
    """An edited replication factor becomes a Reassignment with approval Automatic, created by the operator's account."""
    raw = {
        "apiVersion": "steward.dev/v1alpha1",
        "kind": "Reassignment",
        "metadata": {"name": "of-a-topic", "namespace": NAMESPACE},
        "spec": {"clusterRef": {"name": "main"}, **GOAL, "approval": "Automatic"},
    }

    done = api.kubectl("create", f"--as={OPERATOR}", "--filename=-", stdin=json.dumps(raw))

    assert (done.returncode, done.stderr) == (0, "")
    assert users.may_approve(OPERATOR)


def test_writing_reassignments_does_not_include_approving_them(users: Users) -> None:
    """`kubectl auth can-i` answers for people; the verb is one like any other."""
    assert (users.may_approve(EDITOR), users.may_approve(APPROVER)) == (False, True)


def test_administrators_of_a_namespace_may_approve(chart: Chart) -> None:
    """Aggregated to the ClusterRole admin, not to edit."""
    found = one(chart.render(), "ClusterRole", f"{NAMESPACE}-steward-admin")

    labels = {key: value for key, value in found["metadata"]["labels"].items() if "aggregate-to" in key}
    assert labels == {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}
    assert found["rules"] == [{"apiGroups": ["steward.dev"], "resources": ["reassignments"], "verbs": ["approve"]}]


@pytest.mark.shows("E19")
@pytest.mark.parametrize("approve", [False, True])
def test_the_account_of_the_analytics_may_propose_and_approves_only_if_the_schedule_does(
    chart: Chart, approve: bool
) -> None:
    """`analytics.schedule.approve` is what lets proposals run without approval."""
    analytics: dict[str, Any] = {"enabled": True, "sampler": {"enabled": True}}
    analytics["schedule"] = {"enabled": True, "approve": approve, "storage": {"url": "s3a://balance"}}

    rights = granted(chart.render({"analytics": analytics}), "steward-balance")

    verbs = {verb for verb, _, resource, _ in rights if resource == "reassignments"}
    assert verbs == {"list", "create", "delete"} | ({"approve"} if approve else set())


def test_the_policies_are_bound_to_the_namespaces_that_are_served(chart: Chart) -> None:
    """They do not apply to the resources of another operator."""
    assert served_namespaces(chart, f"{PREFIX}-reassignments") == ([NAMESPACE], None)


def test_without_the_right_nothing_of_it_is_rendered(chart: Chart) -> None:
    """The policies and the role are cluster-scoped: a user who may not create them disables the right."""
    names = {item["metadata"]["name"] for item in chart.render({"admission": {"approveRight": "Disabled"}})}

    assert not {name for name in names if name.startswith(PREFIX)}
