"""Log directories of brokers (JBOD, KIP-112): those that failed, are unevenly used, or are cordoned.

A directory that failed is offline until the broker is restarted, and its replicas with it. Directories of a broker are uneven if the used
shares of their volumes differ by UNEVEN_PERCENT; directories on one volume have the same share, and are never uneven.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from kafka_operator.decide.kafka.kafka_errors import message_of, passes_by_itself, reason_of
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.resources.cluster import Cluster, ClusterStatus
from kafka_operator.resources.log_dirs import Directory, LogDirsStatus
from reconciler.decide.conditions import FALSE, TRUE, UNKNOWN, event_of_reasons, with_condition
from reconciler.decide.listed import listed
from reconciler.decide.steps import ResourceEvent

LOG_DIRS_EVERY_S = 60.0
"""Interval of reads: one small response of each broker, and a directory that failed stays so until the broker restarts."""

UNEVEN_PERCENT = 20
"""Difference between the used shares of two volumes, in percent of a volume, from which directories count as uneven."""

MAX_BROKERS = 1_000
"""Brokers that are queried: each needs a connection; the largest clusters have some hundreds."""

MAX_SHOWN = 64
"""Directories of each kind in the status, of the brokers with the lowest ids; the limit in the schema."""

UNKNOWN_BYTES = -1
"""Size of a volume in an answer of a version before 4, or where the broker cannot determine it."""

LOG_DIRS_ONLINE, OFFLINE, NOT_AUTHORIZED = "LogDirsOnline", "LogDirOffline", "NotAuthorized"
"""Condition, and its reasons that a user has to know."""


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory as its broker reports it; bytes are those of its volume, -1 if they are unknown (before Kafka 3.3)."""

    path: str
    online: bool = True
    total_bytes: int = UNKNOWN_BYTES
    usable_bytes: int = UNKNOWN_BYTES
    cordoned: bool = False

    @property
    def used_percent(self) -> int | None:
        """Return the used share of the volume in percent, rounded down; None if it is unknown.

        >>> LogDir("/data/1", total_bytes=200, usable_bytes=50).used_percent
        75
        """
        if self.total_bytes <= 0 or self.usable_bytes < 0:
            return None
        return 100 * (self.total_bytes - self.usable_bytes) // self.total_bytes


BrokerLogDirs = Mapping[int, tuple[LogDir, ...] | Failure]
"""Broker -> its log directories, or its failure (DescribeLogDirs)."""


def summarize(found: BrokerLogDirs, before: LogDirsStatus) -> LogDirsStatus:
    """Return the directories that the status shows; for a broker that did not answer, those shown before."""
    known = {broker: dirs for broker, dirs in sorted(found.items()) if not isinstance(dirs, Failure)}
    every = [(broker, item) for broker, dirs in known.items() for item in sorted(dirs, key=lambda item: item.path)]

    def shown(items: Iterable[Directory], earlier: Iterable[Directory]) -> tuple[Directory, ...]:
        kept = (item for item in earlier if isinstance(found.get(item.broker_id), Failure))
        return tuple(sorted((*items, *kept), key=lambda item: item.broker_id)[:MAX_SHOWN])

    return LogDirsStatus(
        offline=shown((Directory(broker, item.path) for broker, item in every if not item.online), before.offline),
        uneven=shown((item for broker, dirs in known.items() for item in _uneven(broker, dirs)), before.uneven),
        cordoned=shown((Directory(broker, item.path) for broker, item in every if item.cordoned), before.cordoned),
    )


def with_log_dirs(cluster: Cluster, status: ClusterStatus, found: BrokerLogDirs, now: datetime) -> ClusterStatus:
    """Return a status with the log directories that were read, and their condition."""
    shown = summarize(found, status.log_dirs)
    state, reason, message = _judged(shown, found)
    conditions = with_condition(
        status.conditions,
        LOG_DIRS_ONLINE,
        status=state,
        reason=reason,
        message=message,
        generation=cluster.metadata.generation,
        now=now,
    )
    return replace(status, log_dirs=shown, conditions=conditions)


def log_dirs_event(before: ClusterStatus, after: ClusterStatus) -> ResourceEvent | None:
    """Return the event for a directory that failed, or a missing right, and for the end of that."""
    return event_of_reasons(before.conditions, after.conditions, LOG_DIRS_ONLINE, {OFFLINE, NOT_AUTHORIZED})


def _judged(shown: LogDirsStatus, found: BrokerLogDirs) -> tuple[str, str, str]:
    """Return status, reason and message of LogDirsOnline."""
    if shown.offline:
        names = listed([f"{item.path} of broker {item.broker_id}" for item in shown.offline])
        message = "Replace the disk and restart the broker, or move its replicas away with the goal removeBrokers."
        return FALSE, OFFLINE, f"Log directories that are offline: {names}. {message}"
    failures = (item for item in found.values() if isinstance(item, Failure) and not passes_by_itself(item))
    failure = next(failures, None)
    if failure is not None:
        return UNKNOWN, reason_of(failure), f"The log directories cannot be read: {message_of(failure)}"
    return TRUE, "AllOnline", "Every log directory of the live brokers is online."


def _uneven(broker: int, dirs: Iterable[LogDir]) -> tuple[Directory, ...]:
    used = sorted((item.used_percent, item.path) for item in dirs if item.online and item.used_percent is not None)
    if not used or used[-1][0] - used[0][0] < UNEVEN_PERCENT:
        return ()
    return tuple(Directory(broker, path, percent) for percent, path in (used[-1], used[0]))
