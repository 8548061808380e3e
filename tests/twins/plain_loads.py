"""Loads of partitions and brokers, from hourly rows one after the other: the plain twin of the stage `loads`.

Follows `model/loads.py` and docs/analytics.md; figures are not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from balance_analytics.study import series

Row = dict[str, Any]
HOUR_S = 3600
GONE_AFTER_S = 3 * HOUR_S


def plain_loads(facts: Sequence[Row], window_days: int, min_minutes: int) -> tuple[dict[Any, Row], dict[Any, Row]]:
    """Return loads by topic and partition, those of deleted topics left out, and sums by broker and hour (Unix time)."""
    counting = [_seconds(row) for row in facts if row["minutes"] >= min_minutes]
    end_s = max(counting) + HOUR_S
    start_s = max(min(counting), end_s - window_days * 24 * HOUR_S)
    by_partition: dict[Any, list[Row]] = {}
    for row in sorted(facts, key=_seconds):
        if _seconds(row) >= start_s:
            by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    remaining = {key: rows for key, rows in by_partition.items() if _seconds(rows[-1]) >= end_s - GONE_AFTER_S}
    loads = {key: _load(rows, min_minutes) for key, rows in remaining.items()}
    return loads, _brokers([row for rows in remaining.values() for row in rows], min_minutes)


def _seconds(row: Row) -> int:
    return int(row["hour"].timestamp())


def _rate(row: Row, name: str, min_minutes: int) -> float | None:
    if row[name] is None or row["minutes"] < min_minutes:
        return None
    return float(row[name]) / (row["minutes"] * 60)


def _load(rows: list[Row], min_minutes: int) -> Row:
    def rated(name: str) -> list[tuple[Row, float]]:
        found = [(row, _rate(row, name, min_minutes)) for row in rows]
        return [(row, rate) for row, rate in found if rate is not None]

    rates, out, messages = (rated(name) for name in ("bytes_in", "bytes_out", "messages_in"))
    sizes = [(_seconds(row), row["size_bytes"]) for row in rows if row["size_bytes"] is not None]
    highest = max((math.floor(rate + 0.5) for _, rate in rates), default=None)
    return {
        "leader": rows[-1]["leader"],
        "replicas": rows[-1]["replicas"],
        "hours": len(rates),
        "bytes_in_mean": _mean([rate for _, rate in rates]),
        "bytes_in_p95": series.p95(np.array([rate for _, rate in rates])) if rates else None,
        "bytes_in_peak": max((rate for _, rate in rates), default=None),
        "bytes_in_peak_hour": next((row["hour"] for row, rate in rates if math.floor(rate + 0.5) == highest), None),
        "bytes_in_trend": _trend([(_seconds(row), rate) for row, rate in rates]),
        "bytes_out_mean": _mean([rate for _, rate in out]),
        "messages_in_mean": _mean([rate for _, rate in messages]),
        "size_bytes": sizes[-1][1] if sizes else None,
        "size_trend": _trend(sizes),
        "leader_changes": sum(row["leader_changes"] for row in rows),
        "resets": sum(row["resets"] for row in rows),
        "hours_out": len(out),
        "hours_in_rated": sum(row["source_in"] == "prometheus" for row, _ in rates),
        "hours_out_rated": sum(row["bytes_out_source"] == "prometheus" for row, _ in out),
    }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _trend(points: Sequence[tuple[int, float]]) -> float | None:
    times = np.array([at / (24 * HOUR_S) for at, _ in points])
    return series.slope(times, np.array([value for _, value in points], dtype=np.float64)) if points else None


def _brokers(rows: list[Row], min_minutes: int) -> dict[Any, Row]:
    found: dict[Any, Row] = {}

    def at(broker: int, row: Row) -> Row:
        empty = dict.fromkeys(("leaders", "bytes_in", "bytes_out", "messages_in", "copies", "size_bytes"), 0.0)
        return found.setdefault((broker, _seconds(row)), empty)

    for row in rows:
        if row["leader"] != -1 and _rate(row, "bytes_in", min_minutes) is not None:
            of_leader = at(row["leader"], row)
            of_leader["leaders"] += 1
            for name in ("bytes_in", "bytes_out", "messages_in"):
                of_leader[name] += _rate(row, name, min_minutes) or 0.0
        for broker in row["replicas"] if row["size_bytes"] is not None else ():
            of_holder = at(broker, row)
            of_holder["copies"] += 1
            of_holder["size_bytes"] += row["size_bytes"]
    return found
