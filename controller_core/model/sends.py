"""Requests to brokers, as values: which broker is told about which rows.

Rows are read from the columns when the shell encodes, in the same turn as the change that caused them.
Leaves out versions and bytes: `shell.brokers` knows them.
"""

from dataclasses import dataclass

from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, eq=False)
class SendLeaderAndIsr:
    """Tell one broker to lead or follow these partitions."""

    broker: int
    rows: IntArray
    is_new: BoolArray
    """Per row: the broker holds no replica yet."""


@dataclass(frozen=True, slots=True, eq=False)
class SendMetadata:
    """Tell brokers who is alive and, for these rows, who leads. The same body goes to all of them."""

    brokers: tuple[int, ...]
    rows: IntArray
    deleting: bool = False
    """The rows' topics are being deleted: they are sent with leader -2, and clients see no such topic."""


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """Tell one broker to stop following and, where said, to delete its logs."""

    broker: int
    partitions: tuple[TopicPartition, ...]
    leader_epochs: tuple[int, ...]
    """Per partition; -2 when its topic is being deleted, which passes every check."""
    delete: bool


Send = SendLeaderAndIsr | SendMetadata | SendStopReplica
