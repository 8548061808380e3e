"""Origin of a topic, of a deletion or of a list of requests."""

from enum import Enum


class Origin(Enum):
    """Origin of a topic, of a deletion or of a list of requests, which determines whether it has to be written."""

    REQUESTED = "requested"
    """Requested through the Admin API: to be written."""
    OBSERVED = "observed"
    """Found written."""
    REPAIRED = "repaired"
    """Found written with an assignment that contains the controller's id, or without a topic id: to be written again."""
