"""The job's entry: `spark-submit local:///…/balance.py --samples kafka://… --facts … --out …`.

The same by `python -m balance_analytics.jobs.main`, where Spark runs in this process. Stages (`facts`, `loads`, `study`, `moves`,
`report`) run one after the other, or only some of them; each reads what the one before wrote, so that a run begins again where it ended.
The exit status is 0, 1 when the run could not go on (the last line of the log has the reason), 2 for invalid arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from balance_analytics.jobs import brokers, facts, loads, moves, notes, report, study, termination_message
from balance_analytics.jobs.inputs import broker_facts_of, properties_of, sketches_of
from balance_analytics.jobs.options import options_of, parser
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, errors_about
from balance_analytics.jobs.samples import Samples
from balance_analytics.jobs.session import session
from balance_analytics.jobs.storage import remove
from balance_analytics.model.moves_json import MOVES_NAME
from balance_analytics.model.report_input import ProposedMoves
from balance_analytics.model.results import RESULT_NAME, Result

__all__ = ["main", "parser", "run"]


@dataclass
class Ran:
    """Results of the stages that ran, and `messages` for the log; `failure` is an error of the proposal, after which the report was written."""

    result: Result | None = None
    moves: ProposedMoves | None = None
    report: report.Reported | None = None
    messages: list[str] = field(default_factory=list)
    failure: AnalyticsError | None = None


def run(options: argparse.Namespace, now_ms: int) -> Ran:
    """Run what is asked for. Raises `AnalyticsError`."""
    configured = broker_facts_of(options.brokers)
    sketches = sketches_of(options.key_sketches)
    stages = options.stage
    if "facts" in stages and not options.samples:
        raise AnalyticsError(
            "--samples is missing: give the location of the samples, or run only other stages, such as --stage loads,study"
        )
    spark = session()
    samples = Samples(spark, options.samples, properties_of(options.kafka_properties)) if options.samples else None
    ran = Ran()
    if samples is not None and "facts" in stages:
        _facts(spark, samples, options, now_ms)
    left_out = LeftOuts()
    known = (
        brokers.Brokers(configured)
        if {*stages} <= {"facts", "report"}
        else brokers.brokers_of(spark, samples, configured, left_out)
    )
    if "loads" in stages:
        asked = loads.LoadsOptions(
            options.window_days, options.min_hours, options.cluster_id, now_ms, options.min_minutes
        )
        loads.run(spark, options.facts, options.out, asked, left_out)
        notes.keep(spark, options.out, "loads", left_out.all())
    if "study" in stages:
        with errors_about(options.out, "moves"):
            remove(spark, f"{options.out}/{MOVES_NAME}")  # of an earlier study
        left = notes.kept(spark, options.out, ("facts", "loads"))
        ran.result = study.run(spark, options.out, known.facts, sketches, left)
    if "moves" in stages:
        _moves(spark, known, options, ran)
    if "report" in stages:
        ran.report = report.run(spark, options.out, options.cluster)
    return ran


def _facts(spark: SparkSession, samples: Samples, options: argparse.Namespace, now_ms: int) -> None:
    left_out = LeftOuts()
    how = facts.FactsOptions(
        now_ms, options.window_days, options.round_seconds * 1000, options.rates, options.recompute
    )
    facts.run(spark, samples, options.facts, options.out, how, left_out)
    notes.keep(spark, options.out, "facts", left_out.all())


def _moves(spark: SparkSession, known: brokers.Brokers, options: argparse.Namespace, ran: Ran) -> None:
    """Plan the moves, create the proposal with --propose, and store the moves; without a proposal they are still reported."""
    goal = moves.Goal(
        options.resources,
        options.tolerance_percent / 100,
        options.max_bytes,
        options.exclude_topics,
        options.exclude_brokers,
        options.cluster,
        options.namespace,
        options.approve,
    )
    planned = moves.run(spark, options.out, known, goal)
    name = None
    if not planned.moves.partitions:
        ran.messages.append("nothing needs to move, so nothing is proposed")
    elif options.propose:
        # The client of Kubernetes takes 40 MB: it is loaded when the planner, which needs the most memory, has ended.
        from balance_analytics.proposing import ProposingError, propose_in  # noqa: PLC0415

        kubeconfig = None if options.kubeconfig is None else Path(options.kubeconfig)
        try:
            proposed = asyncio.run(propose_in(planned.objects, options.cluster, options.namespace, kubeconfig))
            name = proposed.name
            ran.messages.append(proposed.message)
        except ProposingError as error:
            ran.failure = AnalyticsError(f"the moves are not proposed: {error}")
    elif planned.objects:
        ran.messages.append(f"the moves are in {options.out}/{moves.MANIFEST_NAME}, for kubectl apply --server-side")
    ran.moves = planned.moves.named(name)
    moves.keep(spark, options.out, ran.moves)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and return the exit status."""
    options = options_of(arguments, (__doc__ or "").splitlines()[0])
    failure: AnalyticsError | None
    try:
        ran = run(options, time.time_ns() // 1_000_000)
        failure = ran.failure
        _print(ran, options.out)
        if ran.report is not None and failure is None:
            termination_message.write(
                options.termination_log, termination_message.summary_text(ran.report.summary, ran.report.path)
            )
    except AnalyticsError as error:
        failure = error
    if failure is None:
        return 0
    sys.stderr.write(f"balance analytics: {failure}\n")
    termination_message.write(options.termination_log, str(failure))
    return 1


def _print(ran: Ran, out: str) -> None:
    lines = []
    if ran.result is not None:
        figures = ", ".join(f"{skew.resource} max/mean {skew.max_over_mean:.2f}" for skew in ran.result.skew)
        lines.append(f"{ran.result.partitions} partitions, {ran.result.window.hours_seen} hours: {figures}")
        lines += [
            f"went on without {left_out.count} x {left_out.what}; to do: {left_out.remedy}"
            for left_out in ran.result.left_out
        ]
        lines.append(f"the result is {out}/{RESULT_NAME}")
    lines += ran.messages
    if ran.report is not None:
        lines.append(f"the report is {ran.report.path}")
    sys.stdout.write("".join(f"balance analytics: {line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
