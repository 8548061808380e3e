"""Definitions, code and examples agree where they repeat each other; and the rights that --spark needs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kafka_operator.rights import needed_rights
from kafka_operator.settings import OperatorSettings
from reconciler.names import GROUP
from reconciler.rights import Right
from spark_operator import kinds
from spark_operator.resources import application as spark_application
from spark_operator.resources import schedule as spark_schedule
from spark_operator.resources.status import SparkState, SparkStatus
from tests.kafka_operator.live import ROOT


def schema(plural: str) -> dict[str, Any]:
    """The schema of a kind."""
    raw = yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = raw["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return found


def test_a_template_is_what_an_application_is() -> None:
    """One schema, written twice."""
    assert schema("sparkapplications")["spec"] == schema("scheduledsparkapplications")["spec"]["properties"]["template"]


def test_defaults_are_the_schemas() -> None:
    """For resources that were made without it."""
    spec = schema("sparkapplications")["spec"]["properties"]
    policy = spec["restartPolicy"]["properties"]

    assert policy["onFailureRetries"]["default"] == spark_application.DEFAULT_RETRIES
    assert policy["onFailureRetryInterval"]["default"] == spark_application.DEFAULT_RETRY_INTERVAL_S
    assert spec["logTailLines"]["default"] == spark_application.DEFAULT_LOG_TAIL_LINES
    assert spec["startTimeoutSeconds"]["default"] == spark_application.DEFAULT_START_TIMEOUT_S
    history = schema("scheduledsparkapplications")["spec"]["properties"]
    assert history["successfulRunHistoryLimit"]["default"] == spark_schedule.DEFAULT_HISTORY
    assert history["failedRunHistoryLimit"]["default"] == spark_schedule.DEFAULT_HISTORY


def test_the_status_that_is_written_is_the_one_that_is_declared() -> None:
    """A field that the schema lacks would be dropped in silence; a state that it lacks would cost the whole status."""
    status = schema("sparkapplications")["status"]["properties"]
    assert set(SparkStatus().to_patch()) == set(status)
    assert [state.value for state in SparkState] == status["state"]["enum"]
    schedule = schema("scheduledsparkapplications")["status"]["properties"]
    assert set(spark_schedule.ScheduleStatus().to_patch()) == set(schedule)


def test_rights_on_pods_are_needed_with_spark_alone() -> None:
    """Least privilege; Kubeflow's resources only where they are made."""
    plain, with_spark = needed_rights(OperatorSettings()), needed_rights(OperatorSettings(spark=True))
    more = set(with_spark) - set(plain)

    assert {right.verb for right in more if (right.resource, right.subresource) == ("pods", "")} == {
        "get",
        "list",
        "create",
        "delete",
    }
    assert Right("get", "", "pods", "log") in more
    assert {("create", GROUP), ("delete", GROUP)} <= {
        (right.verb, right.group) for right in more if right.resource == kinds.SPARK_APPLICATION.plural
    }
    assert not [right for right in with_spark if right.group == "sparkoperator.k8s.io"]
    assert [
        right for right in needed_rights(OperatorSettings(spark=True, spark_operator=True)) if "sparkop" in right.group
    ]


@pytest.mark.parametrize("option", ["spark_local", "spark_operator"])
def test_an_engine_without_the_runner_is_refused(option: str) -> None:
    """In the options' own names."""
    switched_on: dict[str, Any] = {option: True}
    with pytest.raises(ValueError, match="need --spark"):
        OperatorSettings(**switched_on)
