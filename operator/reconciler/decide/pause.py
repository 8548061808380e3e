"""Paused resources (annotation steward.dev/pause-reconciliation): no reconciliation, and an unchanged Ready condition.

One rule for every kind. Ready keeps its value, so that clients that wait for it are not misled; a separate condition reports the
pause. A paused resource can be deleted, without an effect on Kafka: the kinds' own deletion decisions do that.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from reconciler.decide.conditions import TRUE, with_condition, without_condition
from reconciler.decide.steps import Done, ResourceEvent, WriteStatus
from reconciler.names import PAUSE
from reconciler.resources.metadata import Metadata
from reconciler.resources.status import Status

StatusT = TypeVar("StatusT", bound=Status)

PAUSED = "ReconciliationPaused"

MESSAGE = f"The annotation {PAUSE} is true: reconciliation is paused until it is removed."


def decide_pause(metadata: Metadata, status: StatusT, now: datetime) -> WriteStatus[StatusT] | Done | None:
    """Return the step of a resource that is paused, or was until now; None when it is to be decided on as usual."""
    if metadata.deleted is not None:
        return None
    conditions = status.conditions
    reported = any(condition.type == PAUSED for condition in conditions)
    if metadata.paused:
        if reported:
            return Done()
        conditions = with_condition(
            conditions,
            PAUSED,
            status=TRUE,
            reason="Annotated",
            message=MESSAGE,
            generation=metadata.generation,
            now=now,
        )
        event = ResourceEvent(False, PAUSED, MESSAGE)
        return WriteStatus(replace(status, conditions=conditions), event)
    if reported:
        event = ResourceEvent(
            False, "ReconciliationResumed", f"The annotation {PAUSE} was removed: reconciliation resumes."
        )
        return WriteStatus(replace(status, conditions=without_condition(conditions, PAUSED)), event)
    return None
