"""Transaction index of a segment: the aborted transactions that end in it.

    version int16 | producer id int64 | first offset int64 | last offset int64 | last stable offset int64      34 bytes an entry

A consumer with read_committed gets the entries of the range that it fetches and drops their records. Entries are added in the order of their
last offsets. A segment without an aborted transaction has no such file. Source: Kafka's AbortedTxn and TransactionIndex.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kafka_log.errors import UnreadableFileError

TRANSACTION_ENTRY = struct.Struct(">hqqqq")
TRANSACTION_VERSION = 0


class AbortedTransaction(NamedTuple):
    """An aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the abort marker."""
    last_stable_offset: int
    """The last stable offset when the marker was written: no transaction that ends later begins before it."""


class CollectedTransactions(NamedTuple):
    """Aborted transactions of a range of offsets, and whether later segments cannot have more."""

    transactions: list[AbortedTransaction]
    is_complete: bool


def encode_transaction(transaction: AbortedTransaction) -> bytes:
    """Return an entry."""
    return TRANSACTION_ENTRY.pack(TRANSACTION_VERSION, *transaction)


def decode_transactions(content: bytes, base_offset: int = 0) -> Iterator[AbortedTransaction]:
    """Yield the entries of the index of the segment that starts at `base_offset`.

    Raises UnreadableFileError for an incomplete entry, for an unsupported version, and for a transaction that ends before the segment.
    """
    if len(content) % TRANSACTION_ENTRY.size:
        raise UnreadableFileError(f"its size of {len(content)} bytes is no multiple of {TRANSACTION_ENTRY.size}")
    for version, *fields in TRANSACTION_ENTRY.iter_unpack(content):
        transaction = AbortedTransaction(*fields)
        if version > TRANSACTION_VERSION:
            raise UnreadableFileError(f"version {version} is not supported, only {TRANSACTION_VERSION}")
        if transaction.last_offset < base_offset:
            raise UnreadableFileError(
                f"the transaction that ends at offset {transaction.last_offset} ends before the segment from {base_offset}"
            )
        yield transaction


def collect_transactions(content: bytes, fetch_offset: int, upper_bound_offset: int) -> CollectedTransactions:
    """Return the aborted transactions with records from `fetch_offset` on and below `upper_bound_offset`.

    The result is complete when an entry's last stable offset reaches the upper bound: later transactions then begin above it.
    """
    found = []
    for transaction in decode_transactions(content):
        if transaction.last_offset >= fetch_offset and transaction.first_offset < upper_bound_offset:
            found.append(transaction)
        if transaction.last_stable_offset >= upper_bound_offset:
            return CollectedTransactions(found, is_complete=True)
    return CollectedTransactions(found, is_complete=False)


def transaction_bytes_before(content: bytes, offset: int) -> int:
    """Return the size of the index that keeps only the transactions that end below an offset."""
    kept = 0
    for transaction in decode_transactions(content):
        if transaction.last_offset >= offset:
            break
        kept += TRANSACTION_ENTRY.size
    return kept
