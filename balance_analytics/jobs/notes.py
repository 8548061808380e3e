"""What each stage went on without, kept beside its tables: a study that runs alone still says what the facts lack.

Under `<out>/left_out/STAGE.json`, written anew by each run of the stage. Leaves out the words (`troubles`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from pyspark.sql import SparkSession

from balance_analytics.jobs.storage import exists, read_text, write_text
from balance_analytics.model.results import LeftOut


def keep(spark: SparkSession, out: str, stage: str, found: Sequence[LeftOut]) -> None:
    """Write a stage's notes in the place of its former ones."""
    write_text(spark, _place(out, stage), json.dumps([asdict(one) for one in found]))


def kept(spark: SparkSession, out: str, stages: Sequence[str]) -> tuple[LeftOut, ...]:
    """Return the notes of some stages; none of one that has not run."""
    found: list[LeftOut] = []
    for stage in stages:
        if exists(spark, _place(out, stage)):
            found += [LeftOut(**one) for one in json.loads(read_text(spark, _place(out, stage)))]
    return tuple(found)


def _place(out: str, stage: str) -> str:
    return f"{out}/left_out/{stage}.json"
