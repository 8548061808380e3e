"""Conversion of a proposal into the report's values."""

from __future__ import annotations

from collections.abc import Mapping

from balance_analytics.model.report_input import ProposedMoves, ResourceMove
from balance_analytics.moves.planner_request import TOLERANCE
from balance_analytics.moves.proposal import Proposal

UNITS = {
    "disk": ("bytes", "sizes of logs at the window's end"),
    "bytes_in": ("bytes/s", "p95 of the hours, from clients and from leaders"),
    "client_bytes_in": ("bytes/s", "p95 of the hours, only from clients, to the leader"),
    "bytes_out": ("bytes/s", "to consumers (mean of the known hours) and to followers"),
    "leaders": ("partitions", "preferred leaders"),
}
"""By resource: its unit, and the measure that the planner uses."""


def proposed_moves(
    proposal: Proposal, name: str | None, tolerance: float = TOLERANCE, sources: Mapping[str, str] | None = None
) -> ProposedMoves:
    """Return the values that the report shows; `sources` are the data sources of the study's resources, by name."""
    resources = []
    for number, resource in enumerate(proposal.resources):
        unit, source = UNITS[resource]
        source_of_study = (sources or {}).get(resource.removeprefix("client_"))
        ends = [
            (broker.lower[number] + broker.upper[number]) / 2 for broker in proposal.brokers if broker.upper[number] > 0
        ]
        resources.append(
            ResourceMove(
                resource=resource,
                unit=unit,
                source=source if source_of_study is None else f"{source} ({source_of_study})",
                brokers=tuple(broker.broker for broker in proposal.brokers),
                before=tuple(float(broker.before[number]) for broker in proposal.brokers),
                after=tuple(float(broker.after[number]) for broker in proposal.brokers),
                mean=sum(ends) / max(1, len(ends)),
                tolerance=tolerance,
            )
        )
    return ProposedMoves(
        name=name,
        partitions=len(proposal.moves),
        leaders_only=proposal.leaders_only,
        copied_bytes=proposal.copied_bytes,
        lower_bound_bytes=proposal.lower_bound_bytes,
        resources=tuple(resources),
        unreached=proposal.unreached,
    )
