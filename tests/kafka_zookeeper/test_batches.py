"""Batches of operations in transactions."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_zookeeper.protocol import MultiWrite
from kafka_zookeeper.writes import (
    ANY_VERSION,
    Batch,
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    operation_bytes,
    plan_batches,
)

FENCE = Check("/controller_epoch", 3)
PATHS = st.text("aé/", min_size=1, max_size=30).map(lambda text: f"/{text}")
DATA = st.none() | st.binary(max_size=60)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(SetData, PATHS, DATA, st.integers(-1, 9)),
    st.builds(Delete, PATHS, st.integers(-1, 9)),
    st.builds(Check, PATHS, st.integers(-1, 9)),
)
GROUPS = st.lists(st.lists(OPERATIONS, max_size=5), max_size=12)


@given(groups=GROUPS, fence=st.sampled_from([FENCE, None]), most=st.integers(2, 8), most_bytes=st.integers(150, 900))
def test_every_group_is_whole_in_order_and_after_the_fence(
    groups: list[list[Operation]], fence: Check | None, most: int, most_bytes: int
):
    """A group is atomic, and the fence is the first operation of every transaction (invariant: every write is fenced)."""
    batches = plan_batches(groups, fence, most, most_bytes)

    head = [] if fence is None else [fence]
    rebuilt = [[*head, *(operation for index in batch.groups for operation in groups[index])] for batch in batches]
    assert rebuilt == [list(batch.operations) for batch in batches]
    assert [index for index, group in enumerate(groups) if group] == [
        index for batch in batches for index in batch.groups
    ]


@given(groups=GROUPS, most=st.integers(2, 8), most_bytes=st.integers(150, 900))
def test_a_batch_only_exceeds_a_limit_for_a_single_group(groups: list[list[Operation]], most: int, most_bytes: int):
    """The limits apply except if they would split a group."""
    for batch in plan_batches(groups, FENCE, most, most_bytes):
        fits = len(batch.operations) <= most and sum(map(operation_bytes, batch.operations)) <= most_bytes
        assert fits or len(batch.groups) == 1


@given(operations=st.lists(OPERATIONS, max_size=5))
def test_the_estimate_of_a_size_is_never_too_small(operations: list[Operation]):
    """Batches use the estimate; the packet must not be larger."""
    assert MultiWrite(operations).size_bytes <= 8 + 9 + sum(map(operation_bytes, operations))


def test_many_small_groups_share_few_transactions():
    """200,000 partitions must not become 200,000 round trips."""
    groups = [[SetData(f"/brokers/topics/t/partitions/{index}/state", b"{}", 0)] for index in range(1_000)]

    assert [len(batch.groups) for batch in plan_batches(groups, FENCE)] == [499, 499, 2]


def test_empty_groups_make_no_transaction():
    """A transaction with only a fence would be a useless round trip."""
    assert plan_batches([[], []], FENCE) == []
    assert plan_batches([[], [Delete("/a", ANY_VERSION)]], None) == [Batch((Delete("/a", ANY_VERSION),), (1,))]
