"""What a report is drawn of: a study's result and, where there is one, what a proposal does, as plain values.

Leaves out how either came about, and everything of drawing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from balance_analytics.model.results import Result


@dataclass(frozen=True, slots=True)
class ResourceMove:
    """One resource by broker before and after a proposal; `mean` of those that stay; the range is `mean` plus or minus `tolerance`."""

    resource: str
    unit: str
    source: str
    brokers: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    mean: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class ProposedMoves:
    """What a proposal moves, and what it promises. `name` is the Reassignment's, None where none was made."""

    name: str | None
    partitions: int
    leaders_only: int
    copied_bytes: int
    lower_bound_bytes: int
    resources: tuple[ResourceMove, ...]
    unreached: tuple[str, ...]

    def named(self, name: str | None) -> ProposedMoves:
        """Return the same with the Reassignment's name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Everything of a report. `title` names the cluster for people; `made_at` is an ISO 8601 time in UTC.

    Without one the report says none, so that the same study makes the same bytes whenever.
    """

    title: str
    made_at: str | None
    result: Result
    moves: ProposedMoves | None = None
