"""Reconciliation of an Election.

    (new) ─select─► Running, those that need one recorded ─elect─► read again ─► Completed, PartlyFailed or Failed
      │                                                    ▲         │
      └─► Pending (cluster unavailable, topic missing)     └─────────┘ while what failed may pass

A job that runs once. To ask twice is harmless, and so a process that is killed at any moment asks again: the controller elects where it
is needed and nowhere else (a partition that its preferred leader leads, or, unclean, that has a leader, is left alone), and an elected
leader is not unseated by a second election of the same kind. Who needed one is written down before the first question, so that the
result does not depend on the process that gets the response. Nothing has to be reverted, so there is no finalizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafka_operator.decide.elections.election_result import Chosen, find, result_of, select, sentence
from kafka_operator.decide.kafka.kafka_errors import may_pass_for_an_election
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic, Unavailable
from kafka_operator.decide.tenants.tenancy import Refusal
from kafka_operator.decide.timeouts import FAILOVER_RETRY_CAP_S, FAILOVER_TIMEOUT_S, TRANSIENT_ERROR_TIMEOUT_S
from kafka_operator.resources.election import Counts, Election, ElectionState, ElectionStatus, ElectionType
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.conditions import FALSE, TRUE, UNKNOWN, judged_job, ready_of
from reconciler.decide.expiry import decide_expiry
from reconciler.decide.steps import DeleteResource, Done, Mark, ResourceEvent, Retry, Wait, WriteStatus
from reconciler.resources.metadata import write_time

TRY_FOR_S = 30.0
"""How long an Election is retried when its problem may pass: a topic applied with it, a preferred leader that is catching up."""

ASK_FIRST_S, ASK_CAP_S = 1.0, 5.0
"""Delays between two questions: a replica needs seconds to catch up, and each question may be about thousands of partitions."""


@dataclass(frozen=True, slots=True)
class Elect:
    """Ask the controller to elect leaders of these partitions (ElectLeaders, KIP-460)."""

    type: ElectionType
    partitions: tuple[Partition, ...]


Step = Elect | Mark | WriteStatus[ElectionStatus] | DeleteResource | Retry | Wait | Done


@dataclass(frozen=True, slots=True)
class ElectionView:
    """Input of a decision on an Election.

    `waited_s` is the time since the first failed attempt, in seconds; `asked` and `failures` are results of this attempt, failures from the
    last response of the controller.
    """

    now: datetime
    waited_s: float = 0.0
    topics: Mapping[str, KafkaTopic] = field(default_factory=dict)
    refusal: Refusal | None = None
    """Why its namespace may not have this."""
    asked: bool = False
    failures: Mapping[Partition, Failure] = field(default_factory=dict)


def decide_election(election: Election, view: ElectionView) -> Step:
    """Return the next step for an Election on a cluster that answers."""
    status = election.status
    if election.metadata.deleted is not None:
        return Done()
    if status.state is not None and status.state.ended:
        return decide_expiry(status.completion_time, election.ttl_s, view.now)
    if election.type is ElectionType.UNCLEAN and not election.accept_data_loss:
        return _end(
            election, view, ElectionState.FAILED, "ConsentMissing", "An unclean election requires acceptDataLoss: true."
        )
    if view.refusal is not None:
        return _wait_or_fail(election, view, view.refusal.reason, view.refusal.message)
    chosen = select(election, view.topics)
    if status.state is not ElectionState.RUNNING or status.counts is None:
        if chosen.missing and view.waited_s < TRY_FOR_S:
            return _wait_or_fail(election, view, "UnknownTopic", f"The cluster has no {chosen.missing_text}.")
        if not chosen.selected:
            reason = "UnknownTopic" if chosen.missing else "NothingSelected"
            message = f"The cluster has no {chosen.missing_text}." if chosen.missing else "No partition is selected."
            return _end(election, view, ElectionState.FAILED, reason, message)
        if chosen.needing or chosen.missing:
            return _running(election, view, chosen)
        return _finish(election, view, Counts(selected=chosen.selected), {})
    if chosen.needing and not view.asked:
        return Elect(election.type, chosen.needing)
    failures = {item: view.failures[item] for item in chosen.needing if item in view.failures}
    unchanged = [item for item in chosen.needing if item not in failures]
    if (
        unchanged and view.waited_s < TRANSIENT_ERROR_TIMEOUT_S
    ):  # the controller has elected, and brokers do not show it yet
        return Retry()
    if any(map(may_pass_for_an_election, failures.values())) and view.waited_s < TRY_FOR_S:
        return Retry(ASK_FIRST_S, ASK_CAP_S)
    return _finish(election, view, status.counts, {**failures, **chosen.missing})


def decide_election_unavailable(election: Election, unavailable: Unavailable, now: datetime, waited_s: float) -> Step:
    """Return the next step for an Election whose cluster could not be read: report it, keep the rest of the status, and retry."""
    status = election.status
    if election.metadata.deleted is not None:
        return Done()
    if status.state is not None and status.state.ended:
        return decide_expiry(status.completion_time, election.ttl_s, now)
    if not unavailable.definite and waited_s < FAILOVER_TIMEOUT_S:
        return Retry(cap_s=FAILOVER_RETRY_CAP_S)
    wanted = _judged(election, now, UNKNOWN, unavailable.reason, unavailable.message)
    return _written(election, replace(wanted, state=status.state or ElectionState.PENDING)) or Retry()


def _wait_or_fail(election: Election, view: ElectionView, reason: str, message: str) -> Step:
    if view.waited_s >= TRY_FOR_S:
        return _end(election, view, ElectionState.FAILED, reason, f"{message} No leader was elected.")
    status = replace(_judged(election, view.now, FALSE, reason, message), state=ElectionState.PENDING)
    return _written(election, status) or Retry(ASK_FIRST_S, ASK_CAP_S)


def _running(election: Election, view: ElectionView, chosen: Chosen) -> Step:
    """Record the partitions that need an election before it is requested; missing ones count as selected, and fail."""
    missing = len(chosen.missing)
    counts = Counts(chosen.selected + missing, len(chosen.needing) + missing)
    message = f"{counts.needed} of {counts.selected} partitions need an election."
    status = replace(
        _judged(election, view.now, FALSE, "Running", message),
        state=ElectionState.RUNNING,
        counts=counts,
        results=result_of(chosen.needing, {}, view.topics, ended=False),
        start_time=write_time(view.now),
    )
    return _written(election, status) or Retry()


def _finish(election: Election, view: ElectionView, counts: Counts, failures: Mapping[Partition, Failure]) -> Step:
    """Evaluate an Election after the last request, by the controller's response and the current leaders."""
    failed = len(failures)
    counts = replace(counts, failed=failed, elected=max(0, counts.needed - failed))
    if not failed:
        state, reason = ElectionState.COMPLETED, "Completed"
    elif counts.elected:
        state, reason = ElectionState.PARTLY_FAILED, "PartlyFailed"
    else:
        state, reason = ElectionState.FAILED, find(failures)
    recorded = tuple(item.partition for item in election.status.results)
    results = result_of((*failures, *(item for item in recorded if item not in failures)), failures, view.topics)
    status = replace(election.status, counts=counts, results=results)
    return _end(
        replace(election, status=status), view, state, reason, sentence(election.type, counts, failures), election
    )


def _end(
    election: Election,
    view: ElectionView,
    state: ElectionState,
    reason: str,
    message: str,
    before: Election | None = None,
) -> Step:
    ready = TRUE if state is ElectionState.COMPLETED else FALSE
    status = replace(
        _judged(election, view.now, ready, reason, message, has_ended=True),
        state=state,
        completion_time=write_time(view.now),
    )
    return _written(before or election, status) or Done()


def _judged(
    election: Election, now: datetime, ready: str, reason: str, message: str, *, has_ended: bool = False
) -> ElectionStatus:
    metadata, status = election.metadata, election.status
    return judged_job(metadata, status, ready=ready, reason=reason, message=message, now=now, ended=has_ended)


def _written(election: Election, status: ElectionStatus) -> WriteStatus[ElectionStatus] | None:
    if status == election.status:
        return None
    old, new = ready_of(election.status.conditions), ready_of(status.conditions)
    assert new is not None, election.key
    if old is not None and (old.reason, election.status.state) == (new.reason, status.state):
        return WriteStatus(status)
    calm = status.state in {ElectionState.COMPLETED, ElectionState.RUNNING} and new.status != UNKNOWN
    return WriteStatus(status, ResourceEvent(warning=not calm, reason=new.reason, message=new.message))
