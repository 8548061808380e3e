"""Findings of the soak test of quorums, on plain values; the live run is `make soak ARGS="--quorum"`."""

import pytest

from bench.soak import parse
from bench.soaking.quorum_history import History, common_bytes, differences


def history(committed: bytes = b"") -> History:
    """What has been seen so far."""
    made = History()
    assert list(made.add_committed(1, committed)) == []
    return made


def test_an_epoch_with_two_leaders_is_a_violation() -> None:
    """Q1: whichever nodes report them; a node that knows no leader reports none."""
    seen = history()

    assert list(seen.add_election(1, 2, 5)) == []
    assert list(seen.add_election(3, -1, 5)) == []
    assert list(seen.add_election(3, 1, 5)) == ["Q1: epoch 5 has leader 2, and on node 3 leader 1"]


def test_a_node_whose_epoch_falls_is_a_violation() -> None:
    """Q2: also after a restart. A node without a file has no epoch."""
    seen = history()

    assert list(seen.add_election(1, 2, 5)) == []
    assert list(seen.add_election(1, -1, -1)) == []
    assert list(seen.add_election(1, 2, 4)) == ["Q2: node 1 went from epoch 5 back to 4"]


@pytest.mark.parametrize("records", [b"", b"abc", b"abcdef"])
def test_a_node_may_know_fewer_or_more_committed_records(records: bytes) -> None:
    """Its high watermark lags behind the leader's; the longest one is kept."""
    seen = history(b"abcd")

    assert list(seen.add_committed(2, records)) == []
    assert seen.committed == max(b"abcd", records, key=len)


def test_other_committed_records_are_a_violation() -> None:
    """Q7: the committed log of a node is the beginning of every longer one."""
    seen = history(b"abcd")

    assert list(seen.add_committed(2, b"abXd5")) == ["Q7: node 2 has other committed records from byte 2 on"]
    assert seen.committed == b"abcd"


def test_a_log_that_lacks_committed_records_at_the_end_is_a_violation() -> None:
    """Q7: they may be missing, or replaced by others."""
    seen = history(b"abcd")

    assert list(seen.lost({1: b"abcd", 2: b"abcde"})) == []
    assert list(seen.lost({1: b"abc", 2: b"abXde"})) == [
        "Q7: node 1 has only 3 of 4 committed bytes",
        "Q7: node 2 has only 2 of 4 committed bytes",
    ]


def test_logs_differ_where_one_is_not_the_beginning_of_the_longest() -> None:
    """Q8: the voters are killed while records arrive, so that some have fewer."""
    assert list(differences({1: b"abc", 2: b"abcd", 3: b"ab"})) == []
    assert list(differences({1: b"aXc", 2: b"abcd"})) == ["Q8: the logs of nodes 1 and 2 differ from byte 1 on"]


@pytest.mark.parametrize(("one", "other", "expected"), [(b"", b"a", 0), (b"ab", b"ab", 2), (b"abc", b"abd", 2)])
def test_the_common_beginning_of_two_logs_is_counted(one: bytes, other: bytes, expected: int) -> None:
    """In bytes."""
    assert common_bytes(one, other) == expected


def test_quorums_are_a_part_of_the_soak_test() -> None:
    """With the seed and the time of the other parts."""
    options = parse(["--quorum", "--minutes", "10", "--seed", "1"])

    assert (options.quorum, options.minutes, options.seed) == (True, 10.0, 1)
