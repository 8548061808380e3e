"""The summary that a driver of the balance analytics leaves as its termination message, and `status.summary`, which is made of it.

Any image may run as a driver, so nothing of the message is believed: it is at most as long as Kubernetes keeps, every number is finite
and every list and text has a bound.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from reconciler.resources.metadata import RawObject
from reconciler.resources.object_names import is_object_name

Found = TypeVar("Found")

KIND = "BalanceSummary"
START = f'{{"kind":"{KIND}",'
"""Prefix of a summary message; other messages come from other programs."""

MAX_MESSAGE_BYTES = 4_096
"""The kubelet keeps no more of a termination message."""

DIGITS = 4
"""Of ratios, after the point, where they are written for people; a gauge has all of them."""

MAX_RESOURCES = 16
MAX_NUMBER = 2.0**63
MAX_PATH_CHARACTERS = 1_024
RESOURCE = re.compile(r"[a-z][a-z_]{0,62}", re.ASCII)
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)


class SummaryError(ValueError):
    """The message begins as a summary and is invalid; contains the problem."""


@dataclass(frozen=True, slots=True)
class SoonestFull:
    """The broker whose disk is full first, in days, with a 90 percent interval; None is beyond the forecast."""

    broker: int
    days: float
    days_low: float | None = None
    days_high: float | None = None


@dataclass(frozen=True, slots=True)
class BalanceSummary:
    """Summary of a study. Skew is the ratio of the highest broker to the mean, by resource.

    `skew` is of the window; `skew_before` and `skew_after` are of what moves level, without and with the moves made.
    """

    window_end: str
    partitions: int
    hot_partitions: int
    not_preferred_ratio: float
    moved_partitions: int
    bytes_to_move: int
    left_outs: int
    skew: Mapping[str, float] = field(default_factory=dict)
    skew_before: Mapping[str, float] = field(default_factory=dict)
    skew_after: Mapping[str, float] = field(default_factory=dict)
    soonest_full: SoonestFull | None = None
    reassignment: str | None = None
    report: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the API's form; what is not known is taken away by a merge."""
        full = self.soonest_full
        return {
            "windowEnd": self.window_end,
            "partitions": self.partitions,
            "hotPartitions": self.hot_partitions,
            "notPreferredRatio": self.not_preferred_ratio,
            "soonestFull": None
            if full is None
            else {"broker": full.broker, "days": full.days, "daysLow": full.days_low, "daysHigh": full.days_high},
            "skew": dict(self.skew),
            "skewBefore": dict(self.skew_before),
            "skewAfter": dict(self.skew_after),
            "movedPartitions": self.moved_partitions,
            "bytesToMove": self.bytes_to_move,
            "leftOuts": self.left_outs,
            "reassignment": self.reassignment,
            "report": self.report,
        }

    def rounded(self) -> BalanceSummary:
        """Return a copy with rounded ratios."""
        return replace(
            self,
            not_preferred_ratio=round(self.not_preferred_ratio, DIGITS),
            skew=_rounded(self.skew),
            skew_before=_rounded(self.skew_before),
            skew_after=_rounded(self.skew_after),
        )


def _rounded(by_resource: Mapping[str, float]) -> dict[str, float]:
    return {resource: round(value, DIGITS) for resource, value in by_resource.items()}


def message_of(summary: BalanceSummary) -> str:
    """Return the termination message that `summary_in` reads, on one line."""
    body = {"kind": KIND, **summary.rounded().to_json()}
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def summary_in(message: str) -> BalanceSummary | None:
    """Return the summary that a termination message is; None for another program's message, SummaryError for a bad one."""
    if not message.startswith(START):
        return None
    if len(message.encode()) > MAX_MESSAGE_BYTES:
        raise SummaryError(f"it has more than {MAX_MESSAGE_BYTES} bytes")
    try:
        body = json.loads(message)
    except ValueError as error:  # cut off where it was too long
        raise SummaryError(f"it is not JSON: {error}") from error
    except RecursionError as error:
        raise SummaryError("it is nested too deeply") from error
    return read_summary(body)


def read_summary(body: RawObject) -> BalanceSummary:
    """Read a summary; SummaryError when a field lacks or cannot be."""
    return BalanceSummary(
        window_end=_required(_text(body, "windowEnd", TIME.fullmatch), "windowEnd"),
        partitions=_whole(body, "partitions"),
        hot_partitions=_whole(body, "hotPartitions"),
        not_preferred_ratio=_required(_number(body, "notPreferredRatio"), "notPreferredRatio"),
        moved_partitions=_whole(body, "movedPartitions"),
        bytes_to_move=_whole(body, "bytesToMove"),
        left_outs=_whole(body, "leftOuts"),
        skew=_by_resource(body, "skew"),
        skew_before=_by_resource(body, "skewBefore"),
        skew_after=_by_resource(body, "skewAfter"),
        soonest_full=_soonest_full(body.get("soonestFull")),
        reassignment=_text(body, "reassignment", is_object_name),
        report=_text(body, "report", None),
    )


def _soonest_full(raw: Any) -> SoonestFull | None:
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise SummaryError("soonestFull is not an object")
    return SoonestFull(
        _whole(raw, "broker"),
        _required(_number(raw, "days"), "days"),
        _number(raw, "daysLow"),
        _number(raw, "daysHigh"),
    )


def _by_resource(body: RawObject, name: str) -> dict[str, float]:
    found = body.get(name) or {}
    if not isinstance(found, Mapping) or len(found) > MAX_RESOURCES:
        raise SummaryError(f"{name} is not an object of at most {MAX_RESOURCES} resources")
    if not all(RESOURCE.fullmatch(resource) for resource in found):
        raise SummaryError(f"{name} has names that are not resources")
    return {resource: _required(_number(found, resource), resource) for resource in sorted(found)}


def _whole(body: RawObject, name: str) -> int:
    found = _required(_number(body, name), name)
    if not found.is_integer():
        raise SummaryError(f"{name} is not a whole number")
    return int(found)


def _number(body: RawObject, name: str) -> float | None:
    found = body.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise SummaryError(f"{name} is not a number")
    if not math.isfinite(found) or not 0 <= found < MAX_NUMBER:
        raise SummaryError(f"{name} is not a number from 0 to 2^63")
    return float(found)


def _text(body: RawObject, name: str, has_form: Callable[[str], object] | None) -> str | None:
    found = body.get(name)
    if found is None:
        return None
    if not isinstance(found, str) or len(found) > MAX_PATH_CHARACTERS or not found.isprintable():
        raise SummaryError(f"{name} is not text of at most {MAX_PATH_CHARACTERS} characters")
    if has_form is not None and not has_form(found):
        raise SummaryError(f"{name} does not have the required form")
    return found


def _required(found: Found | None, name: str) -> Found:
    if found is None:
        raise SummaryError(f"{name} lacks")
    return found
