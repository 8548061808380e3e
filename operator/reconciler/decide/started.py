"""Resources that run once and have started: not run again when they come back without their status.

    annotation steward.dev/started     <uid>/<generation>/<digest of the plan, or ->     before the first effect, at the latest at the end

What has been done is recorded in `status`, which backups leave out (Velero) and which an exported manifest loses when it is applied. Such
an object looks like a new one, except for the annotation; a copy has it with the uid of the object that it was copied from. ADR 37.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from reconciler.decide.conditions import FALSE, JobStatusT, event_of_change, judged_job
from reconciler.decide.steps import Done, Mark, WriteStatus
from reconciler.names import STARTED
from reconciler.resources.metadata import Metadata

StepT = TypeVar("StepT")

RESTORED = "RestoredWithoutStatus"

NO_DIGEST = "-"


def decide_started(
    metadata: Metadata, status: JobStatusT, now: datetime, *, status_follows: bool = False
) -> WriteStatus[JobStatusT] | Done | None:
    """Return the step of a resource that has started and lost its status; None when it is to be decided on as usual.

    `status_follows` where a kind writes its first state after the mark: then the very object that is marked may lack it after a crash.
    """
    mark = metadata.annotation(STARTED)
    if mark is None or status.state is not None or metadata.deleted is not None:
        return None
    if status_follows and is_marked(metadata):
        return None
    refused = judged_job(
        metadata, status, ready=FALSE, reason=RESTORED, message=_message(metadata, mark), now=now, stalled=True
    )
    if refused == status:
        return Done()
    return WriteStatus(refused, event_of_change(status.conditions, refused.conditions))


def marked_first(metadata: Metadata, step: StepT, *, effect: bool, digest: str | None = None) -> StepT | Mark:
    """Return a step, or the mark that has to be written before it: it is an effect, or nothing is left to do."""
    if not effect or is_marked(metadata) or metadata.deleted is not None:
        return step
    return Mark(f"{metadata.uid}/{metadata.generation}/{digest or NO_DIGEST}")


def is_marked(metadata: Metadata) -> bool:
    """Return whether this very object is marked as started, not one that it was copied from."""
    return (metadata.annotation(STARTED) or "").partition("/")[0] == metadata.uid


def _message(metadata: Metadata, mark: str) -> str:
    kind, digest = metadata.key.kind.name, mark.rpartition("/")[2]
    plan = f" with the plan {digest}" if digest.startswith("sha256:") else ""
    return (
        f"The annotation {STARTED} shows that this {kind} has started before{plan}, and its status is lost: it was restored from a backup, or "
        f"created again from an exported manifest. It is not run again. To run it, remove the annotation: kubectl annotate --namespace "
        f"{metadata.key.namespace} {kind.lower()}s.steward.dev {metadata.key.name} {STARTED}-"
    )
