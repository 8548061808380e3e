"""Input files of a run: brokers, sketches of keys, settings of a Kafka client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from balance_analytics.jobs.problems import AnalyticsError
from balance_analytics.study.columns import BrokerFacts
from balance_analytics.study.key_skew import KeySketch

MAX_FILE_BYTES = 10_000_000
"""Of --brokers and --key-sketches: a thousand brokers take 100 kB."""


def properties_of(path: str | None) -> Mapping[str, str]:
    """Read a client's properties: name=value a line, # begins a comment."""
    if path is None:
        return {}
    lines = [line.strip() for line in _text(path).splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def broker_facts_of(path: str | None) -> BrokerFacts:
    """Read --brokers."""
    found = _json(path)
    try:
        racks = {int(broker): str(facts["rack"]) for broker, facts in found.items() if facts.get("rack") is not None}
        sizes = {
            int(broker): int(facts["disk_bytes"])
            for broker, facts in found.items()
            if facts.get("disk_bytes") is not None
        }
    except (TypeError, ValueError) as error:
        raise AnalyticsError(f"--brokers: a broker's id or disk_bytes is not a number: {error}") from error
    return BrokerFacts(racks, sizes)


def sketches_of(path: str | None) -> Mapping[str, KeySketch]:
    """Read --key-sketches."""
    try:
        return {
            topic: KeySketch(
                counters=max(1, len(facts["counts"])),
                messages=int(facts["messages"]),
                error=int(facts["error"]),
                counts={str(key): int(count) for key, count in facts["counts"].items()},
            )
            for topic, facts in _json(path).items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnalyticsError(f"--key-sketches: a sketch lacks messages, error or counts: {error}") from error


def _json(path: str | None) -> Mapping[str, Any]:
    if path is None:
        return {}
    text = _text(path)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise AnalyticsError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(facts, dict) for facts in found.values()):
        raise AnalyticsError(f"{path} must be a JSON object of objects")
    return found


def _text(path: str) -> str:
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise AnalyticsError(f"{path} has more than {MAX_FILE_BYTES} bytes")
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AnalyticsError(f"{path} cannot be read: {error}") from error
