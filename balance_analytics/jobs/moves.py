"""Stage `moves`: loads and the study's result to a proposal, as `<out>/moves.json` and `<out>/reassignment.json`.

The latter is a List for `kubectl apply --server-side`; it is written only if there are moves and the name of the Cluster is known. Leaves
out the planning (`moves/`) and the Kubernetes API (`proposing`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from balance_analytics.jobs.brokers import Brokers
from balance_analytics.jobs.files import arrow_table, contents, row_count
from balance_analytics.jobs.loads import loads_below
from balance_analytics.jobs.memory import require_memory
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, errors_about
from balance_analytics.jobs.storage import exists, read_text, remove, write_text
from balance_analytics.model.loads import PARTITION_LOADS, PARTITIONS_PART
from balance_analytics.model.moves_json import MOVES_NAME, moves_from_json, moves_to_json
from balance_analytics.model.rate_rows import OF_TOPICS
from balance_analytics.model.report_input import ProposedMoves
from balance_analytics.model.results import RESULT_NAME, Result
from balance_analytics.model.results_json import ResultError, from_json
from balance_analytics.moves.manifests import manifests, proposal_name
from balance_analytics.moves.partition_loads import NEEDED, loads_of
from balance_analytics.moves.planner_request import PlannerSettings
from balance_analytics.moves.proposal import propose
from balance_analytics.moves.proposed_moves import proposed_moves

MANIFEST_NAME = "reassignment.json"


@dataclass(frozen=True, slots=True)
class Goal:
    """What to balance, and the Cluster of the Reassignment; without a `cluster` no manifest is written."""

    resources: tuple[str, ...]
    tolerance: float
    max_bytes: int | None = None
    excluded_topics: tuple[str, ...] = ()
    excluded_brokers: tuple[int, ...] = ()
    cluster: str | None = None
    namespace: str | None = None
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """The moves for the report, without a name yet, and the Kubernetes objects to create: none without moves."""

    moves: ProposedMoves
    objects: tuple[dict[str, Any], ...]


def run(spark: SparkSession, out: str, brokers: Brokers, goal: Goal) -> Planned:
    """Plan, and write the manifest. Raises `AnalyticsError`."""
    result = read_result(spark, out)
    published = loads_below(spark, out)
    newest = published.newest(LeftOuts())  # the study has reported what is lost
    loads = published.table(newest, PARTITION_LOADS, PARTITIONS_PART)
    if not newest.sequence:
        raise AnalyticsError(f"there are no loads yet under {out}: run the stage `loads` first")
    with errors_about(out, "loads"):
        (content,) = contents([loads])
        require_memory(spark, row_count(loads, content))
        table = arrow_table(loads, content, NEEDED)
        del content
    try:
        measured = loads_of(table)
        # Arrow keeps the memory of a table for the next one, and the planner is what needs most.
        del table
        pa.default_memory_pool().release_unused()
        proposal = propose(measured, _terms(result, brokers, goal))
        objects: list[dict[str, Any]] = []
        if goal.cluster is not None:
            objects = manifests(
                proposal,
                name=proposal_name(proposal, goal.cluster, result.cluster_id),
                namespace=goal.namespace,
                cluster=goal.cluster,
                cluster_id=result.cluster_id,
                approved=goal.approved,
            )
    except ValueError as error:
        raise AnalyticsError(f"no moves can be planned for the loads under {out}: {error}") from error
    with errors_about(out, "moves"):
        if objects:
            listed = {"apiVersion": "v1", "kind": "List", "items": objects}
            write_text(spark, f"{out}/{MANIFEST_NAME}", json.dumps(listed, indent=1) + "\n")
        else:
            remove(spark, f"{out}/{MANIFEST_NAME}")
    sources = {skew.resource: skew.source for skew in result.skew if skew.resource in OF_TOPICS}
    return Planned(proposed_moves(proposal, None, goal.tolerance, sources), tuple(objects))


def _terms(result: Result, brokers: Brokers, goal: Goal) -> PlannerSettings:
    """Return the planner's settings: brokers of the study and live ones. Brokers that lead none of their preferred partitions count as offline."""
    alive = brokers.alive
    named = {*(row.broker for row in result.brokers), *brokers.facts.racks, *brokers.facts.capacities, *(alive or ())}
    idle = frozenset(row.broker for row in result.brokers if row.preferred_leaders and not row.leaders)
    capacities = {"disk": dict(brokers.facts.capacities)} if brokers.facts.capacities else {}
    return PlannerSettings(
        racks={broker: brokers.facts.racks.get(broker) for broker in sorted(named)},
        offline=idle if alive is None else frozenset(named - alive),
        excluded_brokers=frozenset(goal.excluded_brokers),
        excluded_topics=frozenset(goal.excluded_topics),
        capacities=capacities,
        tolerance=goal.tolerance,
        budget_bytes=goal.max_bytes,
        resources=goal.resources,
    )


def keep(spark: SparkSession, out: str, moves: ProposedMoves) -> None:
    """Store the moves for the stage `report`."""
    with errors_about(out, "moves"):
        write_text(spark, f"{out}/{MOVES_NAME}", moves_to_json(moves))


def kept(spark: SparkSession, out: str) -> ProposedMoves | None:
    """Return the stored moves; None before the stage has run."""
    with errors_about(out, "moves"):
        if not exists(spark, f"{out}/{MOVES_NAME}"):
            return None
        try:
            return moves_from_json(read_text(spark, f"{out}/{MOVES_NAME}"))
        except ResultError as error:
            raise AnalyticsError(f"{out}/{MOVES_NAME} cannot be read: run the stage `moves` again: {error}") from error


def read_result(spark: SparkSession, out: str) -> Result:
    """Return the study's result. Raises `AnalyticsError`."""
    with errors_about(out, "result"):
        if not exists(spark, f"{out}/{RESULT_NAME}"):
            raise AnalyticsError(f"there is no {RESULT_NAME} yet under {out}: run the stage `study` first")
        try:
            return from_json(read_text(spark, f"{out}/{RESULT_NAME}"))
        except ResultError as error:
            raise AnalyticsError(f"{out}/{RESULT_NAME} cannot be read: run the stage `study` again: {error}") from error
