"""Input of a report: the result of a study and, if there is one, the proposed moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from balance_analytics.model.results import Result


@dataclass(frozen=True, slots=True)
class ResourceMove:
    """One resource by broker before and after a proposal; `mean` is that of the brokers that remain; the target range is `mean` times 1 plus or minus `tolerance`."""

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
    """Size and expected effect of a proposal. `name` is that of the Reassignment, None if none was created."""

    name: str | None
    partitions: int
    leaders_only: int
    copied_bytes: int
    lower_bound_bytes: int
    resources: tuple[ResourceMove, ...]
    unreached: tuple[str, ...]

    def named(self, name: str | None) -> ProposedMoves:
        """Return a copy with the name of the Reassignment."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class ReportInput:
    """All data of a report. `title` is the displayed name of the cluster; `made_at` is an ISO 8601 time in UTC.

    If `made_at` is None, the report has no time, so that the same study always gives the same bytes.
    """

    title: str
    made_at: str | None
    result: Result
    moves: ProposedMoves | None = None
