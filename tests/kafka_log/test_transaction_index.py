"""Transaction index of a segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_log.errors import UnreadableFileError
from kafka_log.files.transaction_index_file import TransactionIndexFile
from kafka_log.format.transaction_index import AbortedTransaction, decode_transactions, encode_transaction

FIRST = AbortedTransaction(1, 0, 10, 2)
SECOND = AbortedTransaction(2, 2, 15, 16)
THIRD = AbortedTransaction(1, 30, 40, 41)


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndexFile:
    """An index of three transactions."""
    written = TransactionIndexFile(tmp_path, 0)
    written.append([])
    assert not written.path.exists()
    written.append([FIRST, SECOND])
    written.append([THIRD])
    return written


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound_offset", "expected", "is_complete"),
    [
        (0, 20, [FIRST, SECOND], True),
        (11, 20, [SECOND], True),
        (0, 2, [FIRST], True),
        (16, 31, [THIRD], True),
        (16, 50, [THIRD], False),
        (41, 50, [], False),
    ],
)
def test_a_fetch_gets_the_aborted_transactions_of_its_range(
    index: TransactionIndexFile,
    fetch_offset: int,
    upper_bound_offset: int,
    expected: list[AbortedTransaction],
    is_complete: bool,
) -> None:
    """TransactionIndex.collectAbortedTxns: the next segment is needed until a last stable offset reaches the upper bound."""
    assert index.collect(fetch_offset, upper_bound_offset) == (expected, is_complete)


def test_a_truncation_removes_the_transactions_that_end_behind_it(index: TransactionIndexFile) -> None:
    """TransactionIndex.truncateTo."""
    index.truncate(15)

    assert index.collect(0, 99).transactions == [FIRST]
    index.truncate(11)
    assert index.collect(0, 99).transactions == [FIRST]
    index.reset()
    assert index.path.read_bytes() == b""


def test_a_torn_entry_is_ignored_and_overwritten(index: TransactionIndexFile) -> None:
    """A crash during a write."""
    content = index.path.read_bytes()
    index.path.write_bytes(content[:-1])

    assert index.collect(0, 99).transactions == [FIRST, SECOND]
    index.append([THIRD])
    assert index.path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\0" * 33, "no multiple of 34"),
        (b"\0\1" + b"\0" * 32, "version 1 is not supported, only 0"),
        (encode_transaction(FIRST), "ends before the segment from 11"),
    ],
)
def test_a_damaged_index_is_recognized(content: bytes, reason: str) -> None:
    """TransactionIndex.sanityCheck."""
    with pytest.raises(UnreadableFileError, match=reason):
        list(decode_transactions(content, base_offset=11))
