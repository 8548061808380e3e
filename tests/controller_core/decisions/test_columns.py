"""Partition columns agree with a plain twin when rows are added, removed, reused and widened."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller_core.model import NO_BROKER, NO_EPOCH, NO_LEADER
from controller_core.model.columns import INITIAL_ROWS, INITIAL_WIDTH, PartitionColumns, any_of, keep_ids, pad, unpad
from controller_core.model.ids import MAX_BROKER_ID

BROKERS = st.integers(0, 40)
LISTS = st.lists(BROKERS, max_size=INITIAL_WIDTH + 4, unique=True)
SETS = st.frozensets(BROKERS, max_size=8)


@dataclass(frozen=True)
class Row:
    """One partition, as an object."""

    topic: int
    partition: int
    replicas: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    isr: tuple[int, ...] = ()
    partition_epoch: int = NO_EPOCH
    controller_epoch: int = NO_EPOCH


class ColumnsAgreeWithRows(RuleBasedStateMachine):
    """`PartitionColumns` compared with a dict of row number to `Row`."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = PartitionColumns()
        self.rows: dict[int, Row] = {}
        self.freed: set[int] = set()
        self.topics = 0

    @initialize(rows=st.integers(0, 3))
    def start_nearly_full(self, rows: int) -> None:
        """Start close to the first growth, or empty."""
        if rows:
            self.add([[1, 2]] * (INITIAL_ROWS - rows))

    def one_of_the_rows(self, data: st.DataObject) -> int:
        """Return a row in use."""
        return list(self.rows)[data.draw(st.integers(0, len(self.rows) - 1))]

    @rule(lists=st.lists(LISTS, max_size=5))
    def add(self, lists: list[list[int]]) -> None:
        """Add a topic; freed rows are used before new ones."""
        self.topics += 1
        partitions = np.arange(len(lists), dtype=np.int32)
        rows = self.columns.add(self.topics, partitions, pad(lists)).tolist()
        assert len(set(rows)) == len(lists)
        assert not set(rows) & self.rows.keys()
        assert self.freed <= set(rows) or set(rows) <= self.freed
        self.freed -= set(rows)
        for row, partition, replicas in zip(rows, partitions.tolist(), lists, strict=True):
            self.rows[row] = Row(self.topics, partition, tuple(replicas))

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove a topic, or a few of its rows."""
        topic = self.rows[self.one_of_the_rows(data)].topic
        removed = [row for row, value in self.rows.items() if value.topic == topic]
        self.columns.remove(np.array(removed, dtype=np.int32))
        self.freed |= set(removed)
        for row in removed:
            del self.rows[row]

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), isr=LISTS, leader=st.one_of(BROKERS, st.just(NO_LEADER)), epoch=st.integers(0, 9))
    def set_state(self, data: st.DataObject, isr: list[int], leader: int, epoch: int) -> None:
        """Set a leader and an ISR of any width."""
        row = self.one_of_the_rows(data)
        one = np.array([row], dtype=np.int32)
        number = np.array([epoch], dtype=np.int32)
        self.columns.set_states(one, np.array([leader], dtype=np.int32), number, pad([isr]), number + 1, 7)
        self.rows[row] = replace(
            self.rows[row],
            leader=leader,
            leader_epoch=epoch,
            isr=tuple(isr),
            partition_epoch=epoch + 1,
            controller_epoch=7,
        )

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), replicas=LISTS)
    def set_replicas(self, data: st.DataObject, replicas: list[int]) -> None:
        """Set other replicas, of any width."""
        row = self.one_of_the_rows(data)
        self.columns.set_replicas(np.array([row], dtype=np.int32), pad([replicas]))
        self.rows[row] = replace(self.rows[row], replicas=tuple(replicas))

    @rule(brokers=SETS)
    def query(self, brokers: frozenset[int]) -> None:
        """Every query returns the rows that a plain search over the objects finds."""
        columns, rows = self.columns, self.rows
        flags = columns.flags(brokers)
        expected = {
            "used": set(rows),
            "new": {row for row, value in rows.items() if value.partition_epoch == NO_EPOCH},
            "led": {row for row, value in rows.items() if value.leader in brokers},
            "offline": {
                row for row, value in rows.items() if value.partition_epoch != NO_EPOCH and value.leader not in brokers
            },
            "in isr": {row for row, value in rows.items() if brokers.intersection(value.isr)},
            "hosted": {row for row, value in rows.items() if brokers.intersection(value.replicas)},
        }
        found = {
            "used": columns.used(),
            "new": columns.new(),
            "led": columns.led_by(flags),
            "offline": columns.without_live_leader(flags),
            "in isr": columns.with_in_isr(flags),
            "hosted": columns.hosted_by(flags),
        }
        assert {name: set(rows_found.tolist()) for name, rows_found in found.items()} == expected

    @invariant()
    def values_agree(self) -> None:
        """The last changed rows have the values that were set; `query` compares the others."""
        for row in list(self.rows)[-8:]:
            value = self.rows[row]
            assert value.replicas == self.columns.replicas_of(row)
            assert value.isr == self.columns.isr_of(row)
            assert (value.topic, value.partition) == (self.columns.topic[row], self.columns.partition[row])
            assert (value.leader, value.leader_epoch) == (self.columns.leader[row], self.columns.leader_epoch[row])
            assert value.partition_epoch == self.columns.partition_epoch[row]
            assert value.controller_epoch == self.columns.controller_epoch[row]


ColumnsAgreeWithRows.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, derandomize=True
)
TestColumns = ColumnsAgreeWithRows.TestCase


@settings(deadline=None, derandomize=True)
@given(lists=st.lists(LISTS, max_size=6), kept=SETS)
def test_keep_ids_moves_ids_together_in_their_order(lists: list[list[int]], kept: frozenset[int]) -> None:
    """keep_ids is a filter of each list."""
    ids = pad(lists)
    flags = np.isin(ids, list(kept))

    assert [tuple(i for i in row if i in kept) for row in lists] == [unpad(row) for row in keep_ids(ids, flags)]
    assert [bool(kept.intersection(row)) for row in lists] == any_of(flags).tolist()


@settings(deadline=None, derandomize=True)
@given(lists=st.lists(LISTS, max_size=6), width=st.integers(0, 9))
def test_padding_and_unpadding_are_inverse(lists: list[list[int]], width: int) -> None:
    """The array is as wide as requested, or as the longest list, and has at least one column."""
    ids = pad(lists, width)

    assert [tuple(row) for row in lists] == [unpad(row) for row in ids]
    assert max(1, width, *map(len, lists), 0) == ids.shape[1] if lists else True


def test_padding_and_no_leader_are_in_no_set_of_brokers() -> None:
    """Index -1 reads a False, also if the highest id is a member."""
    columns = PartitionColumns()
    columns.add(0, np.array([0], dtype=np.int32), pad([(7,)]))

    assert not columns.flags([7])[[NO_BROKER, NO_LEADER]].any()
    assert columns.flags([7])[7]


def test_brokers_without_replicas_are_in_no_set() -> None:
    """Flags cover the ids seen so far; no row contains an id beyond them."""
    assert not PartitionColumns().flags([5, -1]).any()


def test_a_broker_id_above_the_limit_is_refused_and_changes_nothing() -> None:
    """ids.MAX_BROKER_ID limits the memory of flags: one znode with a wrong id must not exhaust it."""
    columns = PartitionColumns()
    columns.add(0, np.array([0], dtype=np.int32), pad([(1, 2)]))

    with pytest.raises(ValueError, match="above the maximum"):
        columns.set_replicas(np.array([0], dtype=np.int32), pad([(MAX_BROKER_ID + 1,)]))
    assert columns.replicas_of(0) == (1, 2)
    assert len(columns.flags([1])) == 4

    columns.set_replicas(np.array([0], dtype=np.int32), pad([(3,)]))

    assert columns.replicas_of(0) == (3,)


def test_flags_cover_a_leader_that_is_in_no_list() -> None:
    """A manually written state may contain a leader that is no replica: it is looked up like others, and is not live."""
    columns = PartitionColumns()
    rows = columns.add(0, np.array([0], dtype=np.int32), pad([(1, 2)]))
    epochs = np.array([0], dtype=np.int32)
    columns.set_states(rows, np.array([50], dtype=np.int32), epochs, pad([(1,)]), epochs, 1)

    assert columns.without_live_leader(columns.flags([1, 2])).tolist() == [0]
