"""The schedule of the balance analytics in the chart: disabled by default, with least rights; invalid values are rejected with the reason.

Source: docs/analytics.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from balance_analytics.jobs.options import options_of
from lab.release.commands import ROOT
from spark_operator.decide.command import kubernetes_arguments
from spark_operator.resources.application import read_spark_application
from tests.charts.rendering import JOBS, NAMESPACE, Chart, Resource, one
from tests.charts.rights import granted

pytestmark = pytest.mark.helm

NAME = "steward-balance"
S3 = {"url": "s3a://bucket/steward/", "secret": "object-storage"}


def values(**schedule: Any) -> dict[str, Any]:
    """Values of the chart, with a volume by default."""
    wanted = {"enabled": True, "storage": {"size": "5Gi"}, **schedule}
    return {"analytics": {"enabled": True, "sampler": {"enabled": True}, "schedule": wanted}}


def template(resources: list[Resource]) -> Resource:
    """The template of runs."""
    found: Resource = one(resources, "ScheduledSparkApplication", NAME)["spec"]["template"]
    return found


def selects(peer: Resource) -> str:
    """The component that a peer or a policy selects."""
    component: str = peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
    return component


def test_the_schedule_is_disabled_by_default(chart: Chart) -> None:
    """Also if SparkApplications are enabled."""
    resources = chart.render({"analytics": {"enabled": True}})

    assert [item for item in resources if item["metadata"]["name"].startswith(NAME)] == []


def test_a_run_studies_the_samples_topic_and_proposes(chart: Chart) -> None:
    """The job accepts the arguments. The interval is the sampler's, proposals need approval, and runs do not overlap."""
    resources = chart.render(values())
    spec = one(resources, "ScheduledSparkApplication", NAME)["spec"]
    options = options_of(template(resources)["arguments"])

    assert options.samples == "kafka://steward-kafka.kafka.svc.cluster.local:9092/__steward_samples"
    assert (options.facts, options.out) == ("file:///var/lib/steward/facts", "file:///var/lib/steward/out")
    assert (options.window_days, options.min_hours, options.min_minutes, options.round_seconds) == (14, 24, 5, 60)
    assert (options.cluster, options.namespace, options.propose, options.approve) == ("steward", NAMESPACE, True, False)
    assert (spec["concurrencyPolicy"], spec["schedule"], spec["timeZone"]) == ("Forbid", "30 2 * * *", "UTC")


def test_goals_and_limits_of_proposals_are_passed_to_the_job(chart: Chart) -> None:
    """Resources, budget, exclusions, and approval if the user has configured it."""
    goal = {
        "resources": ["disk", "leaders"],
        "tolerancePercent": 10,
        "maxBytes": "1.5Gi",
        "excludedTopics": ["b", "a"],
        "excludedBrokers": [3],
    }
    rates = "s3a://bucket/rates"
    options = options_of(template(chart.render(values(goal=goal, approve=True, rates=rates)))["arguments"])

    assert (options.resources, options.tolerance_percent, options.max_bytes) == (("disk", "leaders"), 10, 3 * 2**29)
    assert (options.exclude_topics, options.exclude_brokers, options.approve) == (("a", "b"), (3,), True)
    assert rates == options.rates


def test_the_image_contains_the_main_file() -> None:
    """At the path in the chart."""
    dockerfile = (ROOT / "images" / "spark" / "Dockerfile").read_text(encoding="utf-8")

    assert "COPY images/spark/balance.py /opt/steward/balance.py" in dockerfile


def test_the_volume_is_mounted_in_driver_and_executors_and_kept_after_uninstall(chart: Chart) -> None:
    """A created or an existing one. With ReadWriteOnce executors run on the driver's node."""
    made = chart.render(values())
    there = template(chart.render(values(storage={"existingClaim": "mine", "accessMode": "ReadWriteMany"})))
    claim = one(made, "PersistentVolumeClaim", NAME)

    assert (
        claim["spec"]["accessModes"],
        claim["metadata"]["annotations"]["helm.sh/resource-policy"],
    ) == (["ReadWriteOnce"], "keep")
    for name in ("driver", "executor"):
        assert template(made)[name]["volumeMounts"] == [{"name": "balance", "mountPath": "/var/lib/steward"}]
        assert template(made)[name]["podSecurityContext"]["fsGroup"] == 10001
    affinity = template(made)["executor"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert template(made)["driver"]["labels"] == affinity[0]["labelSelector"]["matchLabels"]
    assert there["volumes"] == [{"name": "balance", "persistentVolumeClaim": {"claimName": "mine"}}]
    assert "affinity" not in there["executor"]


def test_keys_of_object_storage_are_read_from_a_secret(chart: Chart) -> None:
    """They are not in arguments or settings, which are visible to all users that may read the pod."""
    resources = chart.render(values(storage=S3))
    found = template(resources)

    assert "--facts=s3a://bucket/steward/facts" in found["arguments"]
    assert "volumes" not in found
    for name in ("driver", "executor"):
        references = {variable["name"]: variable["valueFrom"]["secretKeyRef"] for variable in found[name]["env"]}
        assert references["AWS_SECRET_ACCESS_KEY"] == {"name": "object-storage", "key": "secret-key"}
    assert [item for item in resources if item["kind"] == "PersistentVolumeClaim"] == []


def test_only_the_driver_of_the_schedule_has_the_right_to_propose(chart: Chart) -> None:
    """Least privilege: it cannot change Reassignments, so that it cannot approve existing ones."""
    resources = chart.render(values())
    own, others = granted(resources, NAME), granted(resources, "spark")

    assert {right for right in own if right[3] == NAMESPACE} == {
        ("list", "steward.dev", "reassignments", NAMESPACE),
        ("create", "steward.dev", "reassignments", NAMESPACE),
        ("delete", "steward.dev", "reassignments", NAMESPACE),
        ("create", "", "configmaps", NAMESPACE),
    }
    assert {right for right in own if right[3] != NAMESPACE} == others
    assert template(resources)["driver"]["serviceAccount"] == NAME
    account = one(resources, "ServiceAccount", NAME)
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["namespace"] == JOBS


def test_all_objects_of_a_run_are_in_the_namespace_of_jobs(chart: Chart) -> None:
    """The schedule owns its runs, and pods mount the volume. Proposals are in the namespace of the release."""
    resources = chart.render(values())

    here = {
        (item["kind"], item["metadata"]["namespace"])
        for item in resources
        if item["metadata"]["name"].startswith(NAME) and item["kind"] not in {"Role", "RoleBinding"}
    }
    kinds = ("ScheduledSparkApplication", "PersistentVolumeClaim", "ServiceAccount", "NetworkPolicy")
    assert here == {(kind, JOBS) for kind in kinds}
    assert f"--namespace={NAMESPACE}" in template(resources)["arguments"]


def test_volume_claims_on_demand_need_a_separate_right(chart: Chart) -> None:
    """It is granted only if sparkConf uses such claims: the claim of the facts is in the same namespace."""
    conf = {"spark.kubernetes.executor.volumes.persistentVolumeClaim.a.options.claimName": "OnDemand"}

    without_claims, with_claims = (granted(chart.render(values(**more)), NAME) for more in ({}, {"sparkConf": conf}))
    assert "persistentvolumeclaims" not in {name for _, _, name, _ in without_claims}
    assert ("create", "", "persistentvolumeclaims", JOBS) in with_claims
    assert {namespace for _, _, name, namespace in with_claims if name == "persistentvolumeclaims"} == {JOBS}


def test_a_jvm_of_several_cores_collects_in_parallel(chart: Chart) -> None:
    """With one thread per core. With one core the JVM chooses; sparkConf overrides the option."""
    several = template(chart.render(values(executor={"cores": 4})))

    assert several["executor"]["javaOptions"] == "-XX:+UseParallelGC -XX:ParallelGCThreads=4"
    assert "javaOptions" not in several["driver"]


@pytest.mark.parametrize(
    ("partitions", "driver", "executor"),
    [
        (1, ("768m", "512m"), "2048m"),
        (100_000, ("793m", "572m"), "2098m"),
        (1_000_000, ("1018m", "1112m"), "2548m"),
        (2_000_000, ("1268m", "1712m"), "3048m"),
    ],
)
def test_default_memory_depends_on_the_partitions_of_the_cluster(
    chart: Chart, partitions: int, driver: tuple[str, str], executor: str
) -> None:
    """Heap and overhead of the driver; heap of executors, which also depends on cores."""
    found = template(chart.render(values(partitions=partitions, executor={"cores": 2})))

    assert (found["driver"]["memory"], found["driver"]["memoryOverhead"]) == driver
    assert (found["executor"]["memory"], found["executor"].get("memoryOverhead")) == (executor, None)


@pytest.mark.parametrize(
    ("wanted", "memory", "overhead"),
    [
        ({}, "770m", "518m"),
        ({"driver": {"memory": "4g"}}, "4g", None),
        ({"driver": {"memoryOverhead": "2g"}}, "770m", "2g"),
        ({"driver": {"memory": "4g", "memoryOverhead": "2g"}}, "4g", "2g"),
        ({"sparkConf": {"spark.kubernetes.memoryOverheadFactor": "0.9"}}, "770m", None),
    ],
)
def test_memory_of_the_driver_that_is_set_takes_precedence(
    chart: Chart, wanted: dict[str, Any], memory: str, overhead: str | None
) -> None:
    """If only the heap is set, the operator derives the overhead from it."""
    found = template(chart.render(values(**wanted)))["driver"]

    assert (found["memory"], found.get("memoryOverhead")) == (memory, overhead)


def test_an_executors_memory_that_is_set_takes_precedence(chart: Chart) -> None:
    """With any number of cores."""
    found = template(chart.render(values(partitions=1_000_000, executor={"cores": 4, "memory": "3g"})))

    assert found["executor"]["memory"] == "3g"


@pytest.mark.parametrize(("cores", "collector"), [(1, None), (4, "-XX:+UseParallelGC -XX:ParallelGCThreads=4")])
def test_spark_submit_gets_the_collector_for_driver_and_executors(
    chart: Chart, cores: int, collector: str | None
) -> None:
    """In the command of the operator, by the number of cores of each."""
    spec = template(chart.render(values(driver={"cores": cores}, executor={"cores": cores})))
    metadata = {"name": NAME, "namespace": JOBS, "uid": "11111111-2222", "resourceVersion": "1"}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    arguments = kubernetes_arguments(read_spark_application({"metadata": metadata, "spec": spec}), 1)
    conf = dict(argument.split("=", 1) for argument in arguments if argument.startswith("spark."))

    assert {conf.get(f"spark.{name}.extraJavaOptions") for name in ("driver", "executor")} == {collector}


def test_ports_of_spark_are_reachable_only_from_its_pods(chart: Chart) -> None:
    """Brokers accept connections from the namespace of jobs, also if clients are limited."""
    for clients in ([], [{"podSelector": {"matchLabels": {"a": "b"}}}]):
        resources = chart.render(values() | {"networkPolicy": {"clients": clients}})

        driver, executor = (
            one(resources, "NetworkPolicy", f"{NAME}-{name}")["spec"] for name in ("driver", "executor")
        )
        assert selects(driver) == "balance-driver"
        assert [selects(peer) for peer in driver["ingress"][0]["from"]] == ["balance-executor"]
        assert [selects(peer) for peer in executor["ingress"][0]["from"]] == ["balance-driver", "balance-executor"]
        jobs = {"matchLabels": {"kubernetes.io/metadata.name": JOBS}}
        admitted = one(resources, "NetworkPolicy", "steward-broker")["spec"]["ingress"][1]["from"]
        of_jobs = [selects(peer) for peer in admitted if peer.get("namespaceSelector") == jobs]
        assert of_jobs == ["balance-driver", "balance-executor"]
        for name, policy in (("driver", driver), ("executor", executor)):
            assert template(resources)[name]["labels"] == policy["podSelector"]["matchLabels"]


def without(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Values of the analytics with some of them changed."""
    return {"analytics": {**base["analytics"], **changes}}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (without(values(), enabled=False), "analytics.schedule.enabled is true and analytics.enabled is false"),
        (
            values() | {"operator": {"spark": {"enabled": False}}},
            "analytics.schedule.enabled is true and operator.spark.enabled is false",
        ),
        (without(values(), sampler={"enabled": False}), "analytics.schedule.samples is empty: there are no samples"),
        (
            values(storage={}),
            "analytics.schedule.storage is empty: set size, existingClaim or url",
        ),
        (values(storage={"size": "5Gi", **S3}), "analytics.schedule.storage has size and url: set one of them"),
        (values(storage={"size": "5Gi", "secret": "a"}), "analytics.schedule.storage.secret is for object storage"),
        (values(samples="kafka://b:9092/samples"), "analytics.schedule.cluster is empty"),
        (
            without(values(), sampler={"enabled": True, "bootstrapServers": "b:9092"}),
            "analytics.schedule.cluster is empty, and the samples are not of the release's cluster",
        ),
        (values(kafkaProperties={"secret": "a"}), "analytics.schedule.kafkaProperties needs both secret and key"),
        (
            without(
                values(cluster="main"),
                sampler={"enabled": True, "bootstrapServers": "b:9093", "securityProtocol": "SSL"},
            ),
            "analytics.sampler.securityProtocol is SSL: set analytics.schedule.kafkaProperties",
        ),
        (values(samples="b:9092"), "'/analytics/schedule/samples': 'b:9092' does not match pattern"),
        (values(rates="/etc/passwd"), "'/analytics/schedule/rates': '/etc/passwd' does not match pattern"),
        (values(schedule="nightly"), "'/analytics/schedule/schedule': 'nightly' does not match pattern"),
        (values(windowDays=91), "'/analytics/schedule/windowDays': maximum: got 91, want 90"),
        (values(goal={"resources": ["cpu"]}), "'/analytics/schedule/goal/resources/0': value must be one of"),
        (values(partitions=0), "'/analytics/schedule/partitions': minimum: got 0, want 1"),
        (values(driver={"memoryOverhead": "0"}), "'/analytics/schedule/driver/memoryOverhead': '0' does not match"),
        (values(driver={"memory": "1Gi"}), "'/analytics/schedule/driver/memory': '1Gi' does not match pattern"),
        (values(storage={"url": "http://x"}), "'/analytics/schedule/storage/url': 'http://x' does not match pattern"),
        (values(storage={"accessMode": "Often"}), "'/analytics/schedule/storage/accessMode': value must be one of"),
        (values(cron="* * * * *"), "'/analytics/schedule': additional properties 'cron' not allowed"),
    ],
)
def test_invalid_values_are_rejected(chart: Chart, wanted: dict[str, Any], message: str) -> None:
    """By the schema, or with an error that names the value."""
    assert message in chart.refusal(wanted)
