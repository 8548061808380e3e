"""SparkApplications that are not run: in another namespace, or with parts that Spark or Kubernetes would ignore without a word."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kafka_operator.rights import needed_rights
from kafka_operator.settings import OperatorSettings
from reconciler.decide.steps import WriteStatus
from spark_operator.decide.application import decide_spark
from spark_operator.decide.kubeflow import decide_kubeflow
from spark_operator.decide.refusals import (
    HONOURED_DRIVER_SETTINGS,
    VOLUME_KINDS,
    ignored_settings,
    refused_namespace,
    refused_spec,
)
from spark_operator.decide.schedule import ScheduleView, decide_schedule
from spark_operator.decide.steps import CreateDriver, CreateMirror, NoMirror, SparkView
from tests.reconciler.virtual_time import run_virtually
from tests.spark_operator.fake_spark import APPLICATION
from tests.spark_operator.makers import raw_spark, schedule, spark, spark_running
from tests.spark_operator.test_definitions import schema

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)

JOBS = frozenset({"kafka-spark"})


def volume(**source: Any) -> dict[str, Any]:
    """A spec with one volume."""
    return {"volumes": [{"name": "data", **source}]}


BAD_VOLUMES = [
    (volume(), "has no source"),
    (volume(hostPath={"path": "/"}), "has hostPath"),
    (volume(nfs={"server": "a", "path": "/"}), "has nfs"),
    (volume(emptyDir={}, hostPath={"path": "/"}), "has emptyDir and hostPath"),
    (volume(emptyDir={}, secret={"secretName": "a"}), "has emptyDir and secret"),
]


@pytest.mark.parametrize(("spec", "message"), BAD_VOLUMES, ids=[message for _, message in BAD_VOLUMES])
@pytest.mark.parametrize("engine", ["Steward", "SparkOperator"])
def test_a_volume_without_exactly_one_supported_source_is_refused(engine: str, spec: Any, message: str) -> None:
    """Kubernetes takes a volume without a source for an emptyDir: what a job writes there is gone with its pod."""
    application = spark(engine=engine, sparkVersion="4.3.0", **spec)
    decide = decide_spark if engine == "Steward" else decide_kubeflow

    step = decide(application, SparkView(NOW, mirror=NoMirror()))

    assert isinstance(step, WriteStatus)
    ready, stalled = step.status.conditions
    assert stalled.type == "Stalled"
    assert (ready.status, ready.reason) == ("False", "InvalidVolume")
    assert message in ready.message


@pytest.mark.parametrize("kind", VOLUME_KINDS)
def test_each_supported_kind_of_volume_is_accepted(kind: str) -> None:
    """By both engines that create pods."""
    spec = volume(**{kind: {}})

    assert isinstance(decide_spark(spark(**spec), SparkView(NOW)), CreateDriver)
    handed_over = spark(engine="SparkOperator", sparkVersion="4.3.0", **spec)
    assert isinstance(decide_kubeflow(handed_over, SparkView(NOW, mirror=NoMirror())), CreateMirror)


@pytest.mark.parametrize(
    "name",
    [
        "spark.kubernetes.driver.annotation.prometheus.io/scrape",
        "spark.kubernetes.driver.label.team",
        "spark.kubernetes.driver.limit.cores",
        "spark.kubernetes.driver.podTemplateFile",
        "spark.kubernetes.driver.secrets.certificates",
        "spark.kubernetes.driver.service.annotation.a",
        "spark.kubernetes.driver.volumes.persistentVolumeClaim.data.mount.path",
        "spark.kubernetes.driverEnv.HOME",
        "spark.kubernetes.authenticate.driver.serviceAccountName",
    ],
)
def test_a_setting_of_the_drivers_pod_is_refused_where_spark_does_not_create_that_pod(name: str) -> None:
    """Spark's configuration page, "Running on Kubernetes": these apply to the driver's pod, which spark-submit creates in cluster mode."""
    step = decide_spark(spark(sparkConf={name: "x"}), SparkView(NOW))

    assert isinstance(step, WriteStatus)
    ready, stalled = step.status.conditions
    assert stalled.type == "Stalled"
    assert (ready.status, ready.reason) == ("False", "IgnoredSettings")
    assert name in ready.message
    assert refused_spec(spark(engine="SparkOperator", sparkConf={name: "x"}).spec) is None
    assert refused_spec(spark(engine="Local", sparkConf={name: "x"}).spec) is None


def test_settings_that_the_driver_itself_reads_are_accepted() -> None:
    """They have their effect in client mode too."""
    conf = dict.fromkeys(HONOURED_DRIVER_SETTINGS, "1") | {"spark.kubernetes.executor.label.team": "x"}

    assert ignored_settings(conf) == []
    assert isinstance(decide_spark(spark(sparkConf=conf), SparkView(NOW)), CreateDriver)


def test_the_schema_knows_the_same_kinds_and_settings() -> None:
    """What is refused at admission is what is refused later."""
    spec = schema("sparkapplications")["spec"]
    items = spec["properties"]["volumes"]["items"]
    rules = [rule["rule"] for rule in (*spec["x-kubernetes-validations"], *items["x-kubernetes-validations"])]

    assert set(items["properties"]) == {"name", *VOLUME_KINDS}
    assert all(any(f"has(self.{kind})" in rule for rule in rules) for kind in VOLUME_KINDS)
    assert all(any(f"'{name}'" in rule for rule in rules) for name in HONOURED_DRIVER_SETTINGS)


def test_an_application_that_runs_is_followed_to_its_end() -> None:
    """Its pods are there already; the next attempt is refused."""
    driver = {"podName": "pi-0a1b2c3d-driver-1", "uid": "pod-1"}
    status = {"state": "Running", "attempts": 1, "driver": driver, "submissionTime": "2026-03-02T11:00:00Z"}

    step = decide_spark(spark(status=status, **volume()), SparkView(NOW, pods=()))

    assert isinstance(step, WriteStatus)
    assert step.status.state == "Failed"
    assert step.status.conditions[0].reason == "DriverLost"


def test_a_namespace_that_is_not_for_jobs_is_refused() -> None:
    """Next to the brokers a driver's account could reach their pods and volumes."""
    assert refused_namespace("kafka-spark", JOBS) is None
    assert refused_namespace("kafka", frozenset()) is None
    refused = refused_namespace("kafka", JOBS)
    assert refused is not None
    assert "Allowed namespaces: kafka-spark." in refused.message

    step = decide_schedule(schedule(), ScheduleView(NOW, refusal=refused))
    assert isinstance(step, WriteStatus)
    assert step.status.conditions[0].reason == "NamespaceNotAllowed"
    assert step.status.next_schedule_time is None


def test_the_operator_creates_no_driver_in_another_namespace() -> None:
    """It is reported by condition and event."""

    async def story() -> None:
        async with spark_running(namespaces=JOBS) as world:
            world.kube.apply(raw_spark())
            await world.run(10)
            assert world.kube.ready(APPLICATION)[:2] == ("False", "NamespaceNotAllowed")
            assert world.fake.created == []
            assert world.reasons() == ["NamespaceNotAllowed"]

    run_virtually(story())


def test_pods_are_created_only_in_the_namespaces_of_jobs() -> None:
    """Least privilege: elsewhere SparkApplications are read, and refused in their status."""
    settings = OperatorSettings(namespaces=("kafka", "kafka-spark"), spark=True, spark_namespaces=("kafka-spark",))
    rights = needed_rights(settings)

    assert {right.namespace for right in rights if right.resource == "pods"} == {"kafka-spark"}
    watched = {right.namespace for right in rights if (right.verb, right.resource) == ("watch", "sparkapplications")}
    assert watched == {"kafka", "kafka-spark"}
    everywhere = OperatorSettings(spark=True, spark_namespaces=("kafka-spark",))
    assert {right.namespace for right in needed_rights(everywhere) if right.resource == "pods"} == {"kafka-spark"}


def test_a_namespace_of_jobs_has_to_be_served() -> None:
    """In the options' own names."""
    with pytest.raises(ValueError, match="--spark-namespace contains jobs, which the operator does not serve"):
        OperatorSettings(namespaces=("kafka",), spark=True, spark_namespaces=("jobs",))
    with pytest.raises(ValueError, match="need --spark"):
        OperatorSettings(spark_namespaces=("jobs",))
