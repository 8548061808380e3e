"""Requests to brokers, as values: the receiving brokers and the rows that each request covers.

The shell reads the rows from the columns when it encodes a request (`shell.brokers`), in the same scheduled event as the change that
caused it.
"""

from dataclasses import dataclass

from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, eq=False)
class SendLeaderAndIsr:
    """LeaderAndIsr to one broker: lead or follow these partitions."""

    broker: int
    rows: IntArray
    is_new: BoolArray
    """Per row: whether the broker has no replica yet."""


@dataclass(frozen=True, slots=True, eq=False)
class SendMetadata:
    """UpdateMetadata to brokers: the live brokers, and the state of these rows. All receivers get the same body."""

    brokers: tuple[int, ...]
    rows: IntArray
    deleting: bool = False
    """Whether the rows' topics are being deleted: they are sent with leader -2, and clients see no such topic."""


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """StopReplica to one broker: stop following these partitions and, with `delete`, delete their logs."""

    broker: int
    partitions: tuple[TopicPartition, ...]
    leader_epochs: tuple[int, ...]
    """Per partition; -2 when its topic is being deleted, which passes every check."""
    delete: bool


Send = SendLeaderAndIsr | SendMetadata | SendStopReplica
