"""Metadata mode: the functions of the loop that differ between ZooKeeper mode and KRaft mode.

Each mode has one value, which is passed to the controller together with the store of that mode. All functions are pure,
except that `apply` changes the cluster that it is given.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from controller_core.model import Cluster, IntArray
from controller_core.model.changes import Change
from controller_core.model.decision import Decision, Send, SendLeaderAndIsr, SendMetadata
from controller_core.model.events import Event


@dataclass(frozen=True, slots=True)
class Mode:
    """Decisions, their application, and requests that bring a broker up to date."""

    decide: Callable[[Cluster, Event], Decision[Any]]
    """Decides on an event. Changes nothing."""
    apply: Callable[[Cluster, Change], tuple[Send, ...]]
    """Applies a committed change, and returns the requests that notify brokers of it."""
    full_metadata_request: Callable[[Cluster, tuple[int, ...]], SendMetadata]
    """Returns an UpdateMetadata with every live broker and partition, for these brokers."""
    leader_and_isr_requests: Callable[[Cluster, Iterable[int], IntArray], Iterable[SendLeaderAndIsr]]
    """Returns a LeaderAndIsr for each of these brokers that has replicas of these rows."""
