"""Engine SparkOperator: translation of the application for Kubeflow's operator, and of its status back.

    resource   sparkoperator.k8s.io/v1beta2 SparkApplication of the same name, owned by Steward's SparkApplication
    spec       copied, without the fields that only Steward has; Kubeflow handles restarts, Steward the time to live
    status     read every few seconds; states are mapped by the table below

The tests cannot run Kubeflow's operator: the manifest is checked against the fields of its CRD.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.decide.conditions import FALSE, TRUE, UNKNOWN
from reconciler.decide.expiry import decide_expiry
from reconciler.decide.steps import Done, Retry, Wait
from reconciler.resources.metadata import RawObject, controller_reference
from spark_operator.decide.application import REFUSED_RETRY_S
from spark_operator.decide.problems import SparkProblem
from spark_operator.decide.refusals import refused_spec
from spark_operator.decide.steps import CreateMirror, NoMirror, ReadMirror, SparkView, Step, SuspendMirror
from spark_operator.decide.transitions import ended, moved, written
from spark_operator.names import SPARK_APPLICATION_LABEL
from spark_operator.resources.application import DEFAULT_SERVICE_ACCOUNT, SparkApplication
from spark_operator.resources.status import DriverRecord, ExecutorCounts, SparkState, SparkStatus

GROUP, VERSION, PLURAL = "sparkoperator.k8s.io", "v1beta2", "sparkapplications"

STEWARD_FIELDS = frozenset({"engine", "logTailLines", "startTimeoutSeconds", "timeToLiveSeconds"})
"""Fields of the spec that Kubeflow's spec lacks, or that Steward handles."""

POLL_INTERVAL_S = 5.0
"""Interval between reads of Kubeflow's status, which is only reported."""

STATES: Mapping[str, SparkState | None] = {
    "": None,
    "SUBMITTED": SparkState.SUBMITTED,
    "RUNNING": SparkState.RUNNING,
    "SUCCEEDING": SparkState.RUNNING,
    "FAILING": SparkState.RUNNING,
    "INVALIDATING": SparkState.RUNNING,
    "COMPLETED": SparkState.COMPLETED,
    "FAILED": SparkState.FAILED,
    "SUBMISSION_FAILED": SparkState.SUBMISSION_FAILED,
    "PENDING_RERUN": SparkState.PENDING_RERUN,
    "SUSPENDING": SparkState.SUSPENDING,
    "SUSPENDED": SparkState.SUSPENDED,
    "RESUMING": SparkState.SUSPENDED,
}
"""status.applicationState.state (v1beta2 ApplicationStateType); an unknown state leaves Steward's state unchanged."""

MAX_MESSAGE_CHARACTERS = 1_000
"""Characters of Kubeflow's error message in a condition."""

PROBLEM_STATES = frozenset({SparkState.FAILED, SparkState.SUBMISSION_FAILED, SparkState.PENDING_RERUN})


def kubeflow_application(application: SparkApplication) -> RawObject:
    """Return Kubeflow's resource for an application."""
    spec: dict[str, Any] = {name: value for name, value in application.spec.raw.items() if name not in STEWARD_FIELDS}
    spec.setdefault("mode", "cluster")
    spec["driver"] = {"serviceAccount": DEFAULT_SERVICE_ACCOUNT, **spec.get("driver", {})}
    spec["executor"] = {"instances": 1, **spec.get("executor", {})}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "SparkApplication",
        "metadata": {
            "name": application.key.name,
            "namespace": application.key.namespace,
            "labels": {SPARK_APPLICATION_LABEL: application.metadata.uid},
            "ownerReferences": [controller_reference(application.metadata)],
        },
        "spec": spec,
    }


def decide_kubeflow(application: SparkApplication, view: SparkView) -> Step:
    """Return the next step for an application that Kubeflow's operator runs."""
    state = application.status.state
    if application.metadata.deleted is not None:
        return Done()
    if state is not None and state.ended:
        return decide_expiry(application.status.completion_time, application.spec.time_to_live_s, view.now)
    problem = view.refusal or (view.mirror if isinstance(view.mirror, SparkProblem) else None)
    if problem is not None:
        updated = moved(application, view.now, state, problem.reason, problem.message, ready=FALSE, stalled=True)
        return written(application, updated) or Wait(REFUSED_RETRY_S)
    if view.mirror is None:
        return ReadMirror()
    if isinstance(view.mirror, NoMirror):
        if state is None:
            refused = refused_spec(application.spec)
            if refused is not None:
                updated = moved(
                    application, view.now, state, refused.reason, refused.message, ready=FALSE, stalled=True
                )
                return written(application, updated) or Wait(REFUSED_RETRY_S)
            return CreateMirror(kubeflow_application(application))
        message = f"The {PLURAL}.{GROUP} of this name was deleted. Create another application."
        return written(application, ended(application, view.now, SparkState.FAILED, "MirrorLost", message)) or Done()
    assert not isinstance(view.mirror, SparkProblem), application.key
    if _has_other_owner(application, view.mirror):
        message = f"A {PLURAL}.{GROUP} of this name already exists and does not belong to this application. Delete it."
        updated = moved(application, view.now, state, "MirrorNameTaken", message, ready=FALSE, stalled=True)
        return written(application, updated) or Retry(POLL_INTERVAL_S)
    if bool(view.mirror["spec"].get("suspend", False)) != application.spec.suspend:
        return SuspendMirror(application.spec.suspend)
    return written(application, mirrored(application, view)) or Wait(POLL_INTERVAL_S)


def mirrored(application: SparkApplication, view: SparkView) -> SparkStatus:
    """Return the status that corresponds to Kubeflow's."""
    assert isinstance(view.mirror, Mapping), application.key
    found = view.mirror.get("status") or {}
    reported = found.get("applicationState") or {}
    word = reported.get("state", "")
    state = STATES.get(word, application.status.state)
    text = str(reported.get("errorMessage") or "")[:MAX_MESSAGE_CHARACTERS]
    reason = "".join(part.capitalize() for part in word.split("_")) or "HandedOver"
    message = f"Kubeflow's operator reports {word or 'nothing yet'}{f': {text}' if text else ''}."
    ready = TRUE if state is SparkState.COMPLETED else FALSE if state in PROBLEM_STATES else UNKNOWN
    status = moved(application, view.now, state, reason, message, ready=ready, mirrored=True)
    pod = (found.get("driverInfo") or {}).get("podName")
    began = found.get("lastSubmissionAttemptTime")
    status = replace(
        status,
        attempts=int(found.get("executionAttempts") or 0),
        driver=DriverRecord(pod, found.get("submissionID") or "") if pod else None,
        executors=_executors(found.get("executorState") or {}) if state is SparkState.RUNNING else None,
        submission_time=began,
        start_time=application.status.start_time or began,
    )
    if state is None or not state.ended:
        return status
    finished = ended(replace(application, status=status), view.now, state, reason, message)
    return replace(finished, completion_time=found.get("terminationTime") or finished.completion_time)


def _executors(states: Mapping[str, str]) -> ExecutorCounts:
    found = list(states.values())
    return ExecutorCounts(
        found.count("RUNNING"), found.count("PENDING"), found.count("COMPLETED"), found.count("FAILED")
    )


def _has_other_owner(application: SparkApplication, mirror: RawObject) -> bool:
    owners = mirror["metadata"].get("ownerReferences") or ()
    return all(owner["uid"] != application.metadata.uid for owner in owners)
