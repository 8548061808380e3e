"""A proposal in the report's own terms. Leaves out drawing."""

from __future__ import annotations

from collections.abc import Mapping

from balance_analytics.model.report_input import ProposedMoves, ResourceMove
from balance_analytics.moves.proposal import Proposal
from balance_analytics.moves.terms import TOLERANCE

UNITS = {
    "disk": ("bytes", "sizes of logs at the window's end"),
    "bytes_in": ("bytes/s", "p95 of the hours, from clients and from leaders"),
    "client_bytes_in": ("bytes/s", "p95 of the hours, from clients, which follows the leader"),
    "bytes_out": ("bytes/s", "to consumers (mean of the hours known) and to followers"),
    "leaders": ("partitions", "preferred leaders"),
}
"""By resource: its unit, and what the planner took for it."""


def proposed_moves(
    proposal: Proposal, name: str | None, tolerance: float = TOLERANCE, sources: Mapping[str, str] | None = None
) -> ProposedMoves:
    """Return what the report shows of a proposal; `sources` say by the study's resource where its figures come from."""
    resources = []
    for number, resource in enumerate(proposal.resources):
        unit, source = UNITS[resource]
        of_study = (sources or {}).get(resource.removeprefix("client_"))
        ends = [(one.lower[number] + one.upper[number]) / 2 for one in proposal.brokers if one.upper[number] > 0]
        resources.append(
            ResourceMove(
                resource=resource,
                unit=unit,
                source=source if of_study is None else f"{source} ({of_study})",
                brokers=tuple(one.broker for one in proposal.brokers),
                before=tuple(float(one.before[number]) for one in proposal.brokers),
                after=tuple(float(one.after[number]) for one in proposal.brokers),
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
