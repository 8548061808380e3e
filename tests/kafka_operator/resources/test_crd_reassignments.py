"""Validation of Reassignments and Elections by the API server, before any operator runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.peers.kubernetes import KubernetesApi
from tests.kafka_operator.live import Namespace
from tests.kafka_operator.makers import raw_election, raw_plan, raw_reassignment

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def namespace(api: KubernetesApi) -> Iterator[Namespace]:
    """A namespace with the Reassignments `move` and `compact`, which the cases try to change."""
    made = Namespace(api, "crd-reassignments")
    made.apply(raw_reassignment(plan=raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])))
    made.apply(raw_reassignment("compact", topics=[{"name": "orders", "brokers": [2, 3, 4]}]))
    yield made
    made.empty()


BAD_PLANS = [
    ({}, "exactly one of plan (replicas of each partition), planFrom"),
    (
        {"plan": raw_plan(p0=[1]), "topics": [{"name": "t", "brokers": [1]}]},
        "exactly one of plan (replicas of each partition), planFrom",
    ),
    ({"plan": raw_plan(p0=[2, 2, 3])}, "Duplicate broker"),
    ({"plan": [*raw_plan(p0=[2]), *raw_plan(p0=[3])]}, "Duplicate value"),
    ({"plan": raw_plan(p0=[])}, "should have at least 1 items"),
    ({"plan": []}, "should have at least 1 items"),
    ({"plan": [{"topic": "t", "partition": -1, "replicas": [1]}]}, "greater than or equal to 0"),
    ({"topics": [{"name": "t", "brokers": [2, 2]}]}, "Duplicate value"),
]


@pytest.mark.shows("F30")
@pytest.mark.parametrize(("spec", "message"), BAD_PLANS, ids=lambda value: str(value)[:40])
def test_a_bad_plan_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], message: str) -> None:
    """What can be known of a plan without the cluster."""
    assert message in namespace.refusal(raw_reassignment("bad", **spec))


def test_a_plan_cannot_be_edited(namespace: Namespace) -> None:
    """Not even the order of replicas, which determines the leader."""
    plan = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])
    for changed in ([*plan, *raw_plan(p2=[2])], raw_plan(p0=[3, 2, 4], p1=[3, 4, 2]), plan[:1]):
        assert "plan cannot be changed" in namespace.refusal(raw_reassignment(plan=changed))
    compact = raw_reassignment("compact", topics=[{"name": "orders", "brokers": [1, 2, 3]}])
    assert "topics cannot be changed" in namespace.refusal(compact)


def test_an_action_goes_forward_and_is_not_taken_back(namespace: Namespace) -> None:
    """A cancelled plan does not come back to life; what was rolled back stays so."""
    plan = raw_plan(p0=[2, 3])
    namespace.apply(raw_reassignment("cancelled", plan=plan))
    namespace.apply(raw_reassignment("cancelled", plan=plan, action="Cancel"))
    for action in ("Execute", None):
        spec = {"plan": plan} | ({"action": action} if action else {})
        assert "action can only change from Execute" in namespace.refusal(raw_reassignment("cancelled", **spec))

    namespace.apply(raw_reassignment("cancelled", plan=plan, action="Rollback"))

    assert "action can only change from Execute" in namespace.refusal(
        raw_reassignment("cancelled", plan=plan, action="Cancel")
    )
    assert "Unsupported value" in namespace.refusal(raw_reassignment("odd", plan=plan, action="Pause"))


BAD_GOALS = [
    ({}, "goal requires at least one of"),
    ({"topics": ["a"]}, "goal requires at least one of"),
    ({"addBrokers": [1, 2], "removeBrokers": [2]}, "cannot be in both addBrokers and removeBrokers"),
    ({"rebalance": False}, "Unsupported value"),
    ({"replicationFactor": 0}, "greater than or equal to 1"),
    ({"removeBrokers": [1, 1]}, "Duplicate value"),
    ({"balanceLogDirs": True, "rebalance": True}, "cannot be combined with goals that move replicas between brokers"),
    ({"racks": True, "topics": ["a"], "excludedTopics": ["b"]}, "topics and excludedTopics cannot be combined"),
    ({"maxBytesMoved": 5}, "goal requires at least one of"),
    ({"racks": True, "maxBytesMoved": 0}, "maxBytesMoved must be a number of bytes larger than 0"),
    ({"racks": True, "maxBytesMoved": "0.0Gi"}, "maxBytesMoved must be a number of bytes larger than 0"),
    ({"racks": True, "maxBytesMoved": "5 GB"}, "maxBytesMoved must be a number of bytes larger than 0"),
]


@pytest.mark.parametrize(("goal", "message"), BAD_GOALS, ids=lambda value: str(value)[:40])
def test_a_goal_that_contradicts_itself_is_refused_at_apply(
    namespace: Namespace, goal: dict[str, Any], message: str
) -> None:
    """Contradictory goals."""
    assert message in namespace.refusal(raw_reassignment("bad-goal", goal=goal))


DIGEST = f"sha256:{'0' * 64}"
BAD_SPECS = [
    ({"plan": raw_plan(p0=[1]), "goal": {"racks": True}}, "spec requires exactly one of plan"),
    ({"planFrom": {"configMaps": ["a"], "digest": "md5:1"}}, "should match"),
    ({"planFrom": {"configMaps": [], "digest": DIGEST}}, "should have at least 1 items"),
    ({"plan": raw_plan(p0=[1]), "throttle": {}}, "exactly one of bytesPerSecond and adaptive"),
    (
        {"plan": raw_plan(p0=[1]), "throttle": {"adaptive": {"minBytesPerSecond": 5, "maxBytesPerSecond": 5}}},
        "must be less than",
    ),
    ({"plan": raw_plan(p0=[1]), "concurrency": {"perBroker": 0}}, "greater than or equal to 1"),
    ({"plan": raw_plan(p0=[1]), "approvedDigest": "yes"}, "should match"),
    ({"plan": raw_plan(p0=[1]), "windows": [{"schedule": "0 22 * * *", "duration": "a night"}]}, "should match"),
    ({"plan": raw_plan(p0=[1]), "windows": [{"schedule": "at ten", "duration": "6h"}]}, "should match"),
    ({"plan": raw_plan(p0=[1]), "guard": {"action": "Rollback"}}, "guard requires at least one of"),
    ({"plan": raw_plan(p0=[1]), "canary": {"partitions": 0}}, "greater than or equal to 1"),
    ({"plan": raw_plan(p0=[1]), "canary": {"partitions": 1, "approvedDigest": "yes"}}, "should match"),
    (
        {"plan": raw_plan(p0=[1]), "guard": {"queries": [{"name": "a", "query": "up", "max": 1, "min": 0.5}]}},
        "A query requires exactly one of max and min.",
    ),
    ({"plan": raw_plan(p0=[1]), "guard": {"consumerLag": [{"group": "a"}]}}, "maxRecords: Required value"),
]


@pytest.mark.parametrize(("spec", "message"), BAD_SPECS, ids=lambda value: str(value)[:40])
def test_other_terms_of_a_reassignment_are_checked_at_apply(
    namespace: Namespace, spec: dict[str, Any], message: str
) -> None:
    """One way to declare a plan, a valid digest, a valid throttle and valid limits."""
    assert message in namespace.refusal(raw_reassignment("bad-terms", **spec))


def test_a_goal_and_where_a_plan_is_cannot_be_edited_and_the_rest_can(namespace: Namespace) -> None:
    """A job stays what its user has seen; its speed may change while it runs."""
    named = {"planFrom": {"configMaps": ["a", "b"], "digest": DIGEST}}
    namespace.apply(raw_reassignment("named", **named))
    namespace.apply(raw_reassignment("named", **named, throttle={"bytesPerSecond": 5}, concurrency={"cluster": 3}))
    namespace.apply(raw_reassignment("named", **named, approval="Required", approvedDigest=DIGEST))
    other = {"planFrom": {"configMaps": ["a", "c"], "digest": DIGEST}}
    assert "planFrom cannot be changed" in namespace.refusal(raw_reassignment("named", **other))

    namespace.apply(raw_reassignment("goal", goal={"racks": True, "maxBytesMoved": "500Gi"}))
    namespace.apply(raw_reassignment("counted", goal={"racks": True, "maxBytesMoved": 5, "excludedTopics": ["a"]}))

    assert "goal cannot be changed" in namespace.refusal(raw_reassignment("goal", goal={"rebalance": True}))


def test_a_plan_of_the_largest_size_is_accepted(namespace: Namespace, tmp_path: Path) -> None:
    """5,000 partitions: within the API server's budget for rules and, with plan and base in the status, for an object's size."""
    plan = [
        {"topic": f"payments.events.v{index}", "partition": index, "replicas": [101, 102, 103]} for index in range(5001)
    ]
    raw = raw_reassignment("large", plan=plan[:5000])
    raw["metadata"]["namespace"] = namespace.name
    namespace.api.kubectl("create", "-f", "-", stdin=json.dumps(raw), check=True)
    status = {"status": {"state": "Running", "plan": plan[:5000], "base": plan[:5000]}}
    path = tmp_path / "patch.json"
    path.write_text(json.dumps(status), encoding="utf-8")
    namespace.kubectl("patch", "reassignment", "large", "--subresource=status", "--type=merge", f"--patch-file={path}")
    raw["spec"]["plan"] = plan
    raw["metadata"]["name"] = "too-large"

    assert "must have at most 5000 items" in namespace.api.kubectl("create", "-f", "-", stdin=json.dumps(raw)).stderr


BAD_ELECTIONS = [
    ({}, "spec requires exactly one of topics, partitions, brokers and all."),
    ({"topics": ["a"], "all": True}, "spec requires exactly one of topics, partitions, brokers and all."),
    ({"all": True, "type": "Unclean"}, "Set acceptDataLoss to true to accept this."),
    ({"all": True, "type": "Unclean", "acceptDataLoss": False}, "Set acceptDataLoss to true to accept this."),
    ({"all": False}, "Unsupported value: false"),
    ({"topics": []}, "should have at least 1 items"),
    ({"brokers": [1, 1]}, "Duplicate value"),
    ({"partitions": [{"topic": "a", "partition": -1}]}, "greater than or equal to 0"),
]


@pytest.mark.parametrize(("spec", "message"), BAD_ELECTIONS, ids=lambda value: str(value)[:40])
def test_a_bad_election_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], message: str) -> None:
    """Unclean with acceptDataLoss: true; one selection."""
    assert message in namespace.refusal(raw_election("bad", **spec))


def test_an_election_cannot_be_edited(namespace: Namespace) -> None:
    """A job runs once; 5,000 partitions are within the API server's budget for rules."""
    partitions = [{"topic": f"payments.events.v{index}", "partition": index} for index in range(5_000)]
    namespace.apply(raw_election("large", partitions=partitions[:3]))
    namespace.apply(raw_election("unclean", type="Unclean", acceptDataLoss=True, topics=["a"]))
    changed = raw_election("large", partitions=partitions[:2])
    assert "An election cannot be changed. Create another Election." in namespace.refusal(changed)
    raw = raw_election("larger", partitions=partitions)
    raw["metadata"]["namespace"] = namespace.name
    namespace.api.kubectl("create", "-f", "-", stdin=json.dumps(raw), check=True)
