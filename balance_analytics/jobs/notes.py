"""Data that each stage left out, stored next to its tables, so that a later run of only the stage `study` reports it too.

It is stored as `<out>/left_out/STAGE.json`, which each run of the stage replaces.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from pyspark.sql import SparkSession

from balance_analytics.jobs.problems import errors_about
from balance_analytics.jobs.storage import exists, read_text, write_text
from balance_analytics.model.results import LeftOut


def keep(spark: SparkSession, out: str, stage: str, found: Sequence[LeftOut]) -> None:
    """Replace the notes of a stage."""
    with errors_about(out, "notes"):
        write_text(spark, _place(out, stage), json.dumps([asdict(note) for note in found]))


def kept(spark: SparkSession, out: str, stages: Sequence[str]) -> tuple[LeftOut, ...]:
    """Return the notes of some stages; a stage that has not run has none."""
    found: list[LeftOut] = []
    with errors_about(out, "notes"):
        for stage in stages:
            if exists(spark, _place(out, stage)):
                found += [LeftOut(**load) for load in json.loads(read_text(spark, _place(out, stage)))]
    return tuple(found)


def _place(out: str, stage: str) -> str:
    return f"{out}/left_out/{stage}.json"
