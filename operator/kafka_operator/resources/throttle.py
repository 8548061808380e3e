"""Throttles: the limit in a spec, and the record of the settings made in Kafka in a status.

A record is written before its settings are made, so that any later process, after any crash, knows what to remove and what was
there before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reconciler.resources.metadata import RawObject


@dataclass(frozen=True, slots=True)
class ThrottleSpec:
    """Bytes per second that each broker may send and receive for moves; a fixed one has equal ends."""

    min_bytes_per_second: int
    max_bytes_per_second: int

    @property
    def adaptive(self) -> bool:
        """Whether the rate is adapted between two bounds."""
        return self.min_bytes_per_second < self.max_bytes_per_second

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        if not self.adaptive:
            return {"bytesPerSecond": self.max_bytes_per_second}
        ends = {
            "minBytesPerSecond": self.min_bytes_per_second,
            "maxBytesPerSecond": self.max_bytes_per_second,
        }
        return {"adaptive": ends}


@dataclass(frozen=True, slots=True)
class BrokerThrottle:
    """A broker whose rates the operator may have set, and the previous rates of other clients, None for none."""

    broker_id: int
    leader_before: str | None = None
    follower_before: str | None = None
    log_dirs_before: str | None = None


@dataclass(frozen=True, slots=True)
class TopicThrottle:
    """A topic whose lists of throttled replicas may have the operator's entries ("0:1", partition and broker), and the previous lists."""

    topic: str
    leader: frozenset[str] = field(default_factory=frozenset)
    follower: frozenset[str] = field(default_factory=frozenset)
    leader_before: str | None = None
    follower_before: str | None = None


@dataclass(frozen=True, slots=True)
class ThrottleRecord:
    """All that may be set in Kafka for one Reassignment; `rates` are those that a broker may have from us, the one in force last."""

    rates: tuple[int, ...]
    brokers: tuple[BrokerThrottle, ...] = ()
    topics: tuple[TopicThrottle, ...] = ()
    log_dirs: bool = False
    """Whether it is the rate of moves between log directories, which no topic has a list for."""

    @property
    def bytes_per_second(self) -> int:
        """Return the rate in force."""
        return self.rates[-1]

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "bytesPerSecond": self.bytes_per_second,
            "rates": list(self.rates),
            "brokers": [
                {"id": item.broker_id}
                | _known(
                    leaderBefore=item.leader_before,
                    followerBefore=item.follower_before,
                    logDirsBefore=item.log_dirs_before,
                )
                for item in self.brokers
            ],
            "topics": [
                {"name": item.topic, "leader": _joined(item.leader), "follower": _joined(item.follower)}
                | _known(leaderBefore=item.leader_before, followerBefore=item.follower_before)
                for item in self.topics
            ],
            "logDirs": self.log_dirs or None,
        }


def read_throttle(raw: RawObject | None) -> ThrottleSpec | None:
    """Read `spec.throttle`."""
    if raw is None:
        return None
    adaptive = raw.get("adaptive")
    if adaptive is None:
        return ThrottleSpec(int(raw["bytesPerSecond"]), int(raw["bytesPerSecond"]))
    return ThrottleSpec(int(adaptive["minBytesPerSecond"]), int(adaptive["maxBytesPerSecond"]))


def read_throttle_record(raw: RawObject | None) -> ThrottleRecord | None:
    """Read `status.throttle`; one without a rate was not written by the operator, and counts as none."""
    if raw is None or not raw.get("rates"):
        return None
    return ThrottleRecord(
        rates=tuple(int(rate) for rate in raw["rates"]),
        brokers=tuple(
            BrokerThrottle(
                int(item["id"]), item.get("leaderBefore"), item.get("followerBefore"), item.get("logDirsBefore")
            )
            for item in raw.get("brokers") or ()
        ),
        topics=tuple(_read_topic(item) for item in raw.get("topics") or ()),
        log_dirs=bool(raw.get("logDirs", False)),
    )


def entries_of(text: str | None) -> tuple[str, ...]:
    """Return the entries of a list of throttled replicas, in their order.

    >>> entries_of("0:1, 0:2")
    ('0:1', '0:2')
    """
    return tuple(entry.strip() for entry in (text or "").split(",") if entry.strip())


def _read_topic(item: RawObject) -> TopicThrottle:
    return TopicThrottle(
        topic=item["name"],
        leader=frozenset(entries_of(item.get("leader"))),
        follower=frozenset(entries_of(item.get("follower"))),
        leader_before=item.get("leaderBefore"),
        follower_before=item.get("followerBefore"),
    )


def _joined(entries: frozenset[str]) -> str:
    return ",".join(sorted(entries, key=_numbers))


def _numbers(entry: str) -> list[int]:
    return [int(part) for part in entry.split(":")]


def _known(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
