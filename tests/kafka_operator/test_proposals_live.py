"""Proposals of the balance analytics on a real API server, with the rights of the chart's account and none."""

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
from balance_analytics.moves.proposal import propose
from balance_analytics.moves.terms import Terms
from balance_analytics.proposing import ProposingError, propose_in
from kafka_operator.decide.plan_document import read_config_maps
from lab.kubernetes import ADMIN, KubernetesApi
from tests.balance_analytics.arrow_loads import loads_table
from tests.balance_analytics.test_moves import columns
from tests.kafka_operator.live import Namespace

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]

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
"""Of what the chart grants (charts/steward/templates/analytics/schedule.yaml), that which proposing needs."""


@pytest.fixture
def kafka(api: KubernetesApi, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace that no operator serves, with an account that has no rights yet."""
    made = Namespace(api, f"proposals-{zlib.crc32(request.node.nodeid.encode()):08x}")
    made.kubectl("create", "serviceaccount", "balance")
    yield made
    made.empty()


def kubeconfig(kafka: Namespace, folder: Path) -> Path:
    """The account's own."""
    content = yaml.safe_load(kafka.api.kubeconfig_for(ADMIN).read_text(encoding="utf-8"))
    token = kafka.kubectl("create", "token", "balance").strip()
    content["users"] = [{"name": user["name"], "user": {"token": token}} for user in content["users"]]
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def grant(kafka: Namespace) -> None:
    """Give the account its rights."""
    kafka.api.kubectl(f"--namespace={kafka.name}", "apply", "-f", "-", stdin=json.dumps(ROLE), check=True)
    kafka.kubectl("create", "rolebinding", "balance", "--role=balance", f"--serviceaccount={kafka.name}:balance")


def objects(kafka: Namespace, partitions: int) -> tuple[str, list[dict[str, Any]]]:
    """A proposal and its name."""
    found = propose(loads_of(loads_table(columns(partitions))), Terms(racks=dict.fromkeys(range(1, 5))))
    name = proposal_name(found, "main")
    return name, manifests(found, name=name, namespace=kafka.name, cluster="main")


def reassignments(kafka: Namespace) -> dict[str, dict[str, Any]]:
    """Those that are there."""
    return {
        item["metadata"]["name"]: item for item in json.loads(kafka.kubectl("get", "reassignments", "-o=json"))["items"]
    }


async def test_an_account_without_rights_is_told_which_it_lacks(kafka: Namespace, tmp_path: Path) -> None:
    """Verb, resource and namespace, and what to do."""
    _, wanted = objects(kafka, 60)
    words = f"refuses to list reassignments in namespace {kafka.name}: allow the driver's service account this verb"

    with pytest.raises(ProposingError, match=words):
        await propose_in(wanted, "main", kafka.name, kubeconfig(kafka, tmp_path))


@pytest.mark.shows("E11")
async def test_one_proposal_waits_and_none_that_is_approved_is_touched(kafka: Namespace, tmp_path: Path) -> None:
    """Proposed once; a newer one takes its place; nothing beside one that is approved; the next one after its end."""
    grant(kafka)
    access = kubeconfig(kafka, tmp_path)
    first, second, third = (objects(kafka, partitions) for partitions in (1300, 60, 40))

    done = await propose_in(first[1], "main", kafka.name, access)
    assert (first[0], f"Reassignment {first[0]} is proposed") == (done.name, done.told)
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
    assert "proposes the same already" in again.told
    assert f"{first[0]}-figures" in kafka.kubectl("get", "configmaps", "-o=name")
    assert list(reassignments(kafka).values()) == [made]

    newer = await propose_in(second[1], "main", kafka.name, access)
    assert f"in the place of {first[0]}" in newer.told
    assert reassignments(kafka).keys() == {second[0]}

    kafka.kubectl(
        "patch", "reassignment", second[0], "--type=merge", f'--patch={{"spec":{{"approvedDigest":"{DIGEST}"}}}}'
    )
    beside = await propose_in(third[1], "main", kafka.name, access)
    assert (beside.name, f"Reassignment {second[0]} is approved and has not ended" in beside.told) == (None, True)
    assert reassignments(kafka).keys() == {second[0]}

    ended = '--patch={"status":{"state":"Completed"}}'
    kafka.kubectl("patch", "reassignment", second[0], "--subresource=status", "--type=merge", ended)
    await propose_in(third[1], "main", kafka.name, access)
    assert reassignments(kafka).keys() == {second[0], third[0]}
