"""Proposals of the balance analytics on a real API server, with the rights of the chart's service account and without rights."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from balance_analytics.moves.manifests import manifests, proposal_name
from balance_analytics.moves.partition_loads import loads_of
from balance_analytics.moves.planner_request import PlannerSettings
from balance_analytics.moves.proposal import propose
from balance_analytics.proposing import ProposingError, propose_in
from kafka_operator.decide.plans.plan_document import read_config_maps
from lab.peers.kubernetes import ADMIN, KubernetesApi
from tests.balance_analytics.arrow_loads import loads_table
from tests.balance_analytics.moves.test_proposal import columns
from tests.kafka_operator.live import Namespace

pytestmark = pytest.mark.kubernetes

DIGEST = f"sha256:{'0' * 64}"
ROLE: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "balance"},
    "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": ["steward.dev"], "resources": ["reassignments"], "verbs": ["list", "create", "delete"]},
    ],
}
"""The rights that proposing needs, of those that the chart grants (charts/steward/templates/analytics/schedule.yaml)."""


@pytest.fixture
def kafka(api: KubernetesApi, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace without an operator, with a service account that has no rights yet."""
    made = Namespace(api, f"proposals-{zlib.crc32(request.node.nodeid.encode()):08x}")
    made.kubectl("create", "serviceaccount", "balance")
    yield made
    made.empty()


def kubeconfig(kafka: Namespace, folder: Path) -> Path:
    """A kubeconfig with the account's token."""
    content = yaml.safe_load(kafka.api.kubeconfig_for(ADMIN).read_text(encoding="utf-8"))
    token = kafka.kubectl("create", "token", "balance").strip()
    content["users"] = [{"name": user["name"], "user": {"token": token}} for user in content["users"]]
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def grant(kafka: Namespace) -> None:
    """Grant the account its rights."""
    kafka.api.kubectl(f"--namespace={kafka.name}", "apply", "-f", "-", stdin=json.dumps(ROLE), check=True)
    kafka.kubectl("create", "rolebinding", "balance", "--role=balance", f"--serviceaccount={kafka.name}:balance")


def objects(kafka: Namespace, partitions: int) -> tuple[str, list[dict[str, Any]]]:
    """The name and the objects of a proposal."""
    found = propose(loads_of(loads_table(columns(partitions))), PlannerSettings(racks=dict.fromkeys(range(1, 5))))
    name = proposal_name(found, "main")
    return name, manifests(found, name=name, namespace=kafka.name, cluster="main")


def reassignments(kafka: Namespace) -> dict[str, dict[str, Any]]:
    """The existing Reassignments by name."""
    return {
        item["metadata"]["name"]: item for item in json.loads(kafka.kubectl("get", "reassignments", "-o=json"))["items"]
    }


async def test_an_account_without_rights_gets_an_error_that_names_the_missing_right(
    kafka: Namespace, tmp_path: Path
) -> None:
    """With verb, resource and namespace, and what to do."""
    _, wanted = objects(kafka, 60)
    message = f"refuses to list reassignments in namespace {kafka.name}: grant the driver's service account this verb"

    with pytest.raises(ProposingError, match=message):
        await propose_in(wanted, "main", kafka.name, kubeconfig(kafka, tmp_path))


@pytest.mark.shows("E11")
async def test_one_proposal_waits_and_approved_ones_are_unchanged(kafka: Namespace, tmp_path: Path) -> None:
    """It is proposed once and replaced by a newer one; while that is approved no other is proposed until it has ended."""
    grant(kafka)
    access = kubeconfig(kafka, tmp_path)
    first, second, third = (objects(kafka, partitions) for partitions in (1300, 60, 40))

    done = await propose_in(first[1], "main", kafka.name, access)
    assert (done.name, done.message) == (first[0], f"Reassignment {first[0]} is proposed")
    (made,) = reassignments(kafka).values()
    assert made["spec"]["approval"] == "Required"
    parts = [
        json.loads(kafka.kubectl("get", "configmap", name, "-o=json"))
        for name in made["spec"]["planFrom"]["configMaps"]
    ]
    assert made["spec"]["planFrom"]["digest"] == read_config_maps(parts).digest
    figures = json.loads(kafka.kubectl("get", "configmap", f"{first[0]}-figures", "-o=json"))
    for part in (*parts, figures):
        assert [owner["uid"] for owner in part["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]

    kafka.kubectl("delete", "configmap", f"{first[0]}-figures")
    again = await propose_in(first[1], "main", kafka.name, access)
    assert "already proposes the same" in again.message
    assert f"{first[0]}-figures" in kafka.kubectl("get", "configmaps", "-o=name")
    assert list(reassignments(kafka).values()) == [made]

    newer = await propose_in(second[1], "main", kafka.name, access)
    assert f"replacing {first[0]}" in newer.message
    assert reassignments(kafka).keys() == {second[0]}

    kafka.kubectl(
        "patch", "reassignment", second[0], "--type=merge", f'--patch={{"spec":{{"approvedDigest":"{DIGEST}"}}}}'
    )
    refused = await propose_in(third[1], "main", kafka.name, access)
    assert (refused.name, f"Reassignment {second[0]} is approved and has not ended" in refused.message) == (None, True)
    assert reassignments(kafka).keys() == {second[0]}

    ended = '--patch={"status":{"state":"Completed"}}'
    kafka.kubectl("patch", "reassignment", second[0], "--subresource=status", "--type=merge", ended)
    await propose_in(third[1], "main", kafka.name, access)
    assert reassignments(kafka).keys() == {second[0], third[0]}
