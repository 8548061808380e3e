"""Validation by the API server itself, with its messages, before any operator runs."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_operator.resources.security import FORMER_TYPES
from lab.peers.kubernetes import KubernetesApi
from tests.kafka_operator.live import ROOT, Namespace
from tests.kafka_operator.makers import raw_cluster, raw_election, raw_plan, raw_reassignment, raw_topic
from tests.twins.kstatus import kstatus

pytestmark = pytest.mark.kubernetes

LONG = "a" * 250


@pytest.fixture(scope="module")
def namespace(api: KubernetesApi) -> Iterator[Namespace]:
    """A namespace with Topic `orders` and Reassignment `move`, which the cases try to change."""
    made = Namespace(api, "crds")
    made.take(raw_topic(topicName="Orders", config={"retention.ms": "1"}))
    made.take(raw_topic("plain"))
    made.take(raw_reassignment(plan=raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])))
    made.take(raw_reassignment("compact", topics=[{"name": "orders", "brokers": [2, 3, 4]}]))
    yield made
    made.empty()


NEW_TOPICS = [
    ({"partitions": 0}, "Number of partitions must be larger than 0."),
    ({"partitions": -1}, "Number of partitions must be larger than 0."),
    ({"replicationFactor": 0}, "Replication factor must be larger than 0."),
    ({"replicationFactor": 40000}, "Replication factor must be at most 32767."),
    ({"topicName": ""}, "The topic's name is empty."),
    ({"topicName": "."}, 'The topic\'s name cannot be "." or "..".'),
    ({"topicName": ".."}, 'The topic\'s name cannot be "." or "..".'),
    ({"topicName": LONG}, "The topic's name is longer than the 249 characters that Kafka allows."),
    ({"topicName": "a b"}, "The topic's name is illegal: it may contain only ASCII letters and digits"),
    ({"topicName": "ümlaut"}, "The topic's name is illegal"),
    ({"topicName": "a/b"}, "The topic's name is illegal"),
    ({"deletionPolicy": "Maybe"}, 'supported values: "Delete", "Retain", "Protect"'),
    ({"config": {"retention.ms": 5}}, "must be of type string"),
    ({"clusterRef": {}}, "spec.clusterRef.name: Required value"),
]


@pytest.mark.shows("F30")
@pytest.mark.parametrize(("spec", "words"), NEW_TOPICS, ids=lambda value: str(value)[:40])
def test_a_bad_topic_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], words: str) -> None:
    """An illegal name, RF 0: refused at apply by CEL, in words."""
    raw = raw_topic("bad")
    raw["spec"] |= spec

    assert words in namespace.refusal(raw)


def test_a_resource_name_too_long_for_kafka_is_refused(namespace: Namespace) -> None:
    """metadata.name may have 253 characters, a topic 249; another name for Kafka helps."""
    assert "longer than the 249 characters" in namespace.refusal(raw_topic(LONG))
    namespace.take(raw_topic(LONG, topicName="short"))


CHANGED_TOPICS = [
    ("orders", {"partitions": 5}, "The number of partitions can never be decreased"),
    ("orders", {"topicName": "other"}, "The topic's name cannot be changed"),
    ("orders", {"topicName": None}, "The topic's name cannot be changed"),
    ("plain", {"topicName": "other"}, "The topic's name cannot be changed"),
    ("orders", {"clusterRef": {"name": "other"}}, "clusterRef cannot be changed"),
]


@pytest.mark.shows("F2", "F4", "O8")
@pytest.mark.parametrize(("name", "spec", "words"), CHANGED_TOPICS, ids=lambda value: str(value)[:40])
def test_a_bad_change_of_a_topic_is_refused(namespace: Namespace, name: str, spec: dict[str, Any], words: str) -> None:
    """Fewer partitions, a changed topic name: refused at apply by CEL, in words (O8)."""
    raw = raw_topic("orders", topicName="Orders") if name == "orders" else raw_topic(name)
    raw["spec"] |= spec
    raw["spec"] = {key: value for key, value in raw["spec"].items() if value is not None}

    assert words in namespace.refusal(raw)


def test_good_changes_of_a_topic_are_taken(namespace: Namespace) -> None:
    """More partitions, another replication factor, other settings; the default name written out."""
    namespace.take(raw_topic("plain", partitions=9, replicationFactor=2, config={"a": "b"}))
    namespace.take(raw_topic("plain", topicName="plain", partitions=9, replicationFactor=2))


def test_a_new_resource_is_in_progress_before_the_operator_has_seen_it(namespace: Namespace) -> None:
    """The default of `status` holds although users cannot write it; no operator runs here."""
    namespace.take(raw_topic("unseen"))
    found = namespace.get("Topic", "unseen")

    assert found is not None
    assert (found["status"], kstatus(found)) == ({"observedGeneration": -1}, "InProgress")


def test_mode_has_the_values_of_release_0_1_0_except_a_new_quorum(namespace: Namespace) -> None:
    """The field has no effect. Manifests of 0.1.0 have lower-case values; nothing runs brokers with a quorum of Steward controllers."""
    modes = ("ZooKeeper", "External", "zookeeper", "external")

    assert [namespace.refusal(raw_cluster("moded", mode=mode)) for mode in modes] == [""] * len(modes)
    assert "Unsupported value" in namespace.refusal(raw_cluster("moded", mode="KRaft"))
    for mode in ("Quorum", "quorum"):
        for name in ("moded", "new-mode"):
            assert "quorum of Steward controllers are not supported yet" in namespace.refusal(
                raw_cluster(name, mode=mode)
            )


def test_resources_are_listed_by_their_cluster(namespace: Namespace) -> None:
    """`kubectl get topics --field-selector spec.clusterRef.name=main` (selectableFields, Kubernetes 1.31 and later)."""
    namespace.take(raw_topic("elsewhere", cluster="other"))
    path = f"/apis/steward.dev/v1alpha1/namespaces/{namespace.name}/topics"

    answer = namespace.api.send("GET", f"{path}?fieldSelector=spec.clusterRef.name%3Dother")

    assert [item["metadata"]["name"] for item in json.loads(answer.body)["items"]] == ["elsewhere"]


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
@pytest.mark.parametrize(("spec", "words"), BAD_PLANS, ids=lambda value: str(value)[:40])
def test_a_bad_plan_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], words: str) -> None:
    """What can be known of a plan without the cluster."""
    assert words in namespace.refusal(raw_reassignment("bad", **spec))


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
    namespace.take(raw_reassignment("cancelled", plan=plan))
    namespace.take(raw_reassignment("cancelled", plan=plan, action="Cancel"))
    for action in ("Execute", None):
        spec = {"plan": plan} | ({"action": action} if action else {})
        assert "action can only change from Execute" in namespace.refusal(raw_reassignment("cancelled", **spec))

    namespace.take(raw_reassignment("cancelled", plan=plan, action="Rollback"))

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


@pytest.mark.parametrize(("goal", "words"), BAD_GOALS, ids=lambda value: str(value)[:40])
def test_a_goal_that_contradicts_itself_is_refused_at_apply(
    namespace: Namespace, goal: dict[str, Any], words: str
) -> None:
    """Contradictory goals."""
    assert words in namespace.refusal(raw_reassignment("bad-goal", goal=goal))


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


@pytest.mark.parametrize(("spec", "words"), BAD_SPECS, ids=lambda value: str(value)[:40])
def test_other_terms_of_a_reassignment_are_checked_at_apply(
    namespace: Namespace, spec: dict[str, Any], words: str
) -> None:
    """One way to declare a plan, a valid digest, a valid throttle and valid limits."""
    assert words in namespace.refusal(raw_reassignment("bad-terms", **spec))


def test_a_goal_and_where_a_plan_is_cannot_be_edited_and_the_rest_can(namespace: Namespace) -> None:
    """A job stays what its user has seen; its speed may change while it runs."""
    named = {"planFrom": {"configMaps": ["a", "b"], "digest": DIGEST}}
    namespace.take(raw_reassignment("named", **named))
    namespace.take(raw_reassignment("named", **named, throttle={"bytesPerSecond": 5}, concurrency={"cluster": 3}))
    namespace.take(raw_reassignment("named", **named, approval="Required", approvedDigest=DIGEST))
    other = {"planFrom": {"configMaps": ["a", "c"], "digest": DIGEST}}
    assert "planFrom cannot be changed" in namespace.refusal(raw_reassignment("named", **other))

    namespace.take(raw_reassignment("goal", goal={"racks": True, "maxBytesMoved": "500Gi"}))
    namespace.take(raw_reassignment("counted", goal={"racks": True, "maxBytesMoved": 5, "excludedTopics": ["a"]}))

    assert "goal cannot be changed" in namespace.refusal(raw_reassignment("goal", goal={"rebalance": True}))


def test_a_plan_of_the_largest_size_is_taken(namespace: Namespace, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("spec", "words"), BAD_ELECTIONS, ids=lambda value: str(value)[:40])
def test_a_bad_election_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], words: str) -> None:
    """Unclean with acceptDataLoss: true; one selection."""
    assert words in namespace.refusal(raw_election("bad", **spec))


def test_an_election_cannot_be_edited(namespace: Namespace) -> None:
    """A job runs once; 5,000 partitions are within the API server's budget for rules."""
    partitions = [{"topic": f"payments.events.v{index}", "partition": index} for index in range(5_000)]
    namespace.take(raw_election("large", partitions=partitions[:3]))
    namespace.take(raw_election("unclean", type="Unclean", acceptDataLoss=True, topics=["a"]))
    changed = raw_election("large", partitions=partitions[:2])
    assert "An election cannot be changed. Create another Election." in namespace.refusal(changed)
    raw = raw_election("larger", partitions=partitions)
    raw["metadata"]["namespace"] = namespace.name
    namespace.api.kubectl("create", "-f", "-", stdin=json.dumps(raw), check=True)


MSK = {"region": "eu-central-1"}
ENDPOINT = {"url": "https://login.example.org/token", "scope": "kafka", "caSecretRef": {"name": "ca"}}

BAD_SECURITY = [
    (
        {"authentication": {"type": "Plain", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"authentication": {"type": "MutualTLS", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"tls": {}, "authentication": {"type": "MutualTLS", "username": "u", "secretRef": {"name": "a"}}},
        "username cannot be set with type MutualTLS",
    ),
    (
        {"authentication": {"type": "OAuthBearer", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"tls": {}, "authentication": {"type": "OAuthBearer", "username": "u", "secretRef": {"name": "a"}}},
        "username cannot be set with type OAuthBearer",
    ),
    (
        {"tls": {}, "authentication": {"type": "Plain", "secretRef": {"name": "a"}, "tokenEndpoint": ENDPOINT}},
        "tokenEndpoint is only for type OAuthBearer",
    ),
    (
        {
            "tls": {},
            "authentication": {
                "type": "OAuthBearer",
                "secretRef": {"name": "a"},
                "tokenEndpoint": {"url": "http://login.example.org/token"},
            },
        },
        "spec.authentication.tokenEndpoint.url",
    ),
    (
        {"authentication": {"type": "plain", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"tls": {}, "authentication": {"type": "mtls", "username": "u", "secretRef": {"name": "a"}}},
        "username cannot be set with type MutualTLS",
    ),
    ({"authentication": {"type": "gssapi", "secretRef": {"name": "a"}}}, "Unsupported value"),
    ({"authentication": {"type": "ScramSHA512"}}, "secretRef is required, the Secret with the credentials"),
    (
        {"authentication": {"type": "AwsMskIam", "awsMskIam": MSK}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    ({"tls": {}, "authentication": {"type": "AwsMskIam"}}, "awsMskIam is required with type AwsMskIam"),
    (
        {"tls": {}, "authentication": {"type": "Plain", "secretRef": {"name": "a"}, "awsMskIam": MSK}},
        "it cannot be set with other types",
    ),
    (
        {"tls": {}, "authentication": {"type": "AwsMskIam", "awsMskIam": {"region": "eu-central-1.evil.org/"}}},
        "spec.authentication.awsMskIam.region",
    ),
    (
        {"tls": {}, "authentication": {"type": "AwsMskIam", "awsMskIam": {"region": "cn-north-1"}}},
        "MSK clusters in regions of China are not supported",
    ),
    (
        {"tls": {}, "authentication": {"type": "AwsMskIam", "awsMskIam": MSK | {"roleArn": "steward"}}},
        "spec.authentication.awsMskIam.roleArn",
    ),
    ({"tls": {"caSecretRef": {"name": "../a"}}}, "spec.tls.caSecretRef.name"),
    (
        {"prometheus": {"url": "http://prometheus:9090", "tokenSecretRef": {"name": "a"}}},
        "tokenSecretRef requires a url that begins with https",
    ),
    ({"prometheus": {"url": "https://user:secret@prometheus"}}, "spec.prometheus.url"),
]


@pytest.mark.parametrize(("spec", "words"), BAD_SECURITY, ids=lambda value: str(value)[:40])
def test_security_that_cannot_be_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], words: str) -> None:
    """A password never goes over the wire as it is."""
    assert words in namespace.refusal(raw_cluster("bad-security", **spec))


def test_security_is_taken_in_all_its_forms(namespace: Namespace) -> None:
    """Each type of authentication, by the keys of its usual kind of Secret; former spellings are still accepted."""
    current = ("Plain", "ScramSHA256", "ScramSHA512", "OAuthBearer", "MutualTLS")
    for number, kind in enumerate((*current, *FORMER_TYPES)):
        authentication = {"type": kind, "secretRef": {"name": "user"}}
        namespace.take(raw_cluster(f"by-{number}", tls={"caSecretRef": {"name": "ca"}}, authentication=authentication))
    scram = {"type": "ScramSHA512", "username": "u", "secretRef": {"name": "user", "passwordKey": "pass.word"}}
    namespace.take(raw_cluster("scram-without-tls", authentication=scram))
    bearer = {"type": "OAuthBearer", "secretRef": {"name": "user", "clientIdKey": "id"}, "tokenEndpoint": ENDPOINT}
    namespace.take(raw_cluster("by-token-endpoint", tls={}, authentication=bearer))
    role = MSK | {"roleArn": "arn:aws:iam::123456789012:role/kafka/steward"}
    secret = {"name": "user", "accessKeyIdKey": "id", "secretAccessKeyKey": "secret"}
    for name, more in {"msk-by-operator": {}, "msk-by-key": {"secretRef": secret}}.items():
        namespace.take(raw_cluster(name, tls={}, authentication={"type": "AwsMskIam", "awsMskIam": role, **more}))


@pytest.mark.parametrize(
    ("server", "good"),
    [
        ("kafka-1.example.org:9092", True),
        ("10.0.0.1:9092", True),
        ("[::1]:9092", True),
        ("kafka", False),
        ("kafka:", False),
        ("kafka:port", False),
        ("http://kafka:9092", False),
    ],
)
def test_a_bootstrap_server_is_host_and_port(namespace: Namespace, server: str, good: bool) -> None:
    """Told at apply."""
    refusal = namespace.refusal(raw_cluster(f"c-{abs(hash(server))}", server))

    assert good is (refusal == "")
    assert good or "A bootstrap server must have the form host:port" in refusal


BAD_BROKERS = [
    ({"statefulSet": "b", "replicas": 0}, "replicas must be at least 1."),
    ({"statefulSet": "b", "replicas": 1001}, "less than or equal to 1000"),
    ({"replicas": 3}, "spec.brokers.statefulSet: Required value"),
    ({"statefulSet": "../pods/x"}, "spec.brokers.statefulSet"),
    ({"statefulSet": "b", "firstId": -1}, "greater than or equal to 0"),
]


@pytest.mark.parametrize(("brokers", "words"), BAD_BROKERS, ids=lambda value: str(value)[:40])
def test_pods_that_cannot_be_are_refused_at_apply(namespace: Namespace, brokers: dict[str, Any], words: str) -> None:
    """Values that cannot work are refused; a name that leads elsewhere as well."""
    assert words in namespace.refusal(raw_cluster("bad-brokers", brokers=brokers))


def test_a_cluster_with_pods_has_a_name_that_fits_into_a_label(namespace: Namespace) -> None:
    """steward.dev/cluster on their StatefulSet has the Cluster's name, and a label's value has at most 63 characters."""
    assert "at most 63 characters" in namespace.refusal(raw_cluster("c" * 64, brokers={"statefulSet": "b"}))
    assert "at most 63 characters" in namespace.refusal(raw_cluster("c" * 64, controllers={"statefulSet": "b"}))
    namespace.take(raw_cluster("c" * 64))
    namespace.take(raw_cluster("c" * 63, brokers={"statefulSet": "b"}))


def test_brokers_are_scaled_by_kubectl_scale_and_keep_their_ids(namespace: Namespace) -> None:
    """The scale subresource; ids are written into the brokers' data."""
    namespace.take(raw_cluster("scaled", brokers={"statefulSet": "b", "replicas": 3, "firstId": 5}))

    namespace.kubectl("scale", "cluster.steward.dev/scaled", "--replicas=4")

    found = namespace.get("Cluster", "scaled")
    assert found is not None
    assert found["spec"]["brokers"]["replicas"] == 4
    refusal = namespace.refusal(raw_cluster("scaled", brokers={"statefulSet": "b", "replicas": 4, "firstId": 6}))
    assert "firstId cannot be changed" in refusal


@pytest.mark.parametrize("name", ["cluster", "cluster-secured", "topic", "reassignment", "election"])
def test_the_examples_are_taken(namespace: Namespace, name: str) -> None:
    """They are what people copy."""
    raw = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))
    raw = copy.deepcopy(raw)
    raw["metadata"]["name"] = f"example-{name}"

    namespace.take(raw)


def test_short_names_and_the_category_list_the_resources(namespace: Namespace) -> None:
    """`kubectl get steward`; short names that do not clash with Strimzi's kt and kr."""
    assert "topic.steward.dev/orders" in namespace.kubectl("get", "steward", "-o", "name")
    for short, column in (("stopic", "PARTITIONS"), ("sra", "PROGRESS %"), ("scl", "CONTROLLER")):
        namespace.take(raw_cluster())
        assert column in namespace.kubectl("get", short)


def test_status_is_a_subresource(namespace: Namespace) -> None:
    """A user's apply does not touch it, and the generation does not move with it."""
    raw = raw_topic("with-status")
    raw["status"] = {"partitions": 99}
    namespace.take(raw)

    assert namespace.status("Topic", "with-status") == {"observedGeneration": -1}


BAD_AUTO = [
    ({"onImbalance": {"thresholdPercent": 5}}, "greater than or equal to 10"),
    ({"approval": "Maybe"}, "Unsupported value"),
    ({"template": {"maxBytesMoved": "much"}}, "maxBytesMoved must be a number of bytes larger than 0"),
    ({"template": {"throttle": {}}}, "exactly one of bytesPerSecond and adaptive"),
    ({"template": {"guard": {"action": "Rollback"}}}, "guard requires at least one of maxUnderMinIsrPartitions"),
]


@pytest.mark.parametrize(("auto", "words"), BAD_AUTO, ids=lambda value: str(value)[:40])
def test_a_bad_automatic_rebalance_is_refused_at_apply(namespace: Namespace, auto: dict[str, Any], words: str) -> None:
    """The same words as a Reassignment's own."""
    assert words in namespace.refusal(raw_cluster("bad-auto", autoRebalance=auto))


def test_an_automatic_rebalance_is_taken(namespace: Namespace) -> None:
    """Whole, and with everything left to what it is by default."""
    template = {
        "throttle": {"bytesPerSecond": 5},
        "windows": [{"schedule": "0 22 * * *", "duration": "6h"}],
        "guard": {"maxOfflinePartitions": 0, "queries": [{"name": "load", "query": "up", "max": 2}]},
        "canary": {"partitions": 1},
        "maxBytesMoved": "500Gi",
        "excludedTopics": ["ledger"],
    }
    namespace.take(raw_cluster("auto", autoRebalance={"onBrokersAdded": True, "onImbalance": {}, "template": template}))
