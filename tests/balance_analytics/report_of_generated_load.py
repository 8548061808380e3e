"""A report of generated load, with study and proposal.

It also draws the pictures in docs/pictures:

python -m tests.balance_analytics.report_of_generated_load docs/pictures
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from balance_analytics.model.report_input import ReportInput
from balance_analytics.moves.partition_loads import loads_of
from balance_analytics.moves.planner_request import PlannerSettings
from balance_analytics.moves.proposal import Proposal, propose
from balance_analytics.moves.proposed_moves import proposed_moves
from balance_analytics.report.page import pictures_of
from balance_analytics.study.answer import study
from balance_analytics.study.columns import Question
from lab.generated_load import Layout, LoadSpec, lay_out
from lab.generated_load.state import hours
from tests.balance_analytics.arrow_loads import loads_table
from tests.balance_analytics.generated import question

SPEC = LoadSpec(seed=11, partitions=900, topics=40, brokers=12, days=14, hot=6, outages=2, resets=2, deleted_topics=1)
DRAWN = ("before-after", "heat-map")


def columns_of(layout: Layout, studied: Question) -> dict[str, list[Any]]:
    """Return the loads of partitions in the columns of `<out>/loads/partition`."""
    last = list(hours(layout))[-1]
    rows = np.flatnonzero(layout.there(layout.spec.hours - 1))
    found = studied.partitions
    return {
        "topic": [found.topics[number] for number in found.topic.tolist()],
        "partition": found.partition.tolist(),
        "leader": found.leader.tolist(),
        "replicas": found.replicas.tolist(),
        "bytes_in_p95": found.bytes_in_p95.tolist(),
        "bytes_out_mean": [None] * len(rows),
        "size_bytes": (last.size + last.kept)[rows].astype(np.int64).tolist(),
    }


def generated_report(spec: LoadSpec = SPEC) -> tuple[ReportInput, Proposal]:
    """Generate the load, study it, and propose moves."""
    layout = lay_out(spec)
    brokers = range(1, spec.brokers + 1)
    studied = question(layout, dict.fromkeys(brokers, 80 * 2**40))
    proposal = propose(
        loads_of(loads_table(columns_of(layout, studied))), PlannerSettings(racks=dict.fromkeys(brokers))
    )
    moves = proposed_moves(proposal, "balance-2026-01-15")
    return ReportInput("a generated cluster", "2026-01-15T00:10:00Z", study(studied, ()), moves), proposal


if __name__ == "__main__":
    for picture in pictures_of(generated_report()[0]):
        if picture.name in DRAWN:
            (Path(sys.argv[1]) / f"balance-{picture.name}.png").write_bytes(picture.png)
