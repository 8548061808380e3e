"""Outcome of a transaction, from ZooKeeper's response.

In a failed transaction each operation has a result of type error: code 0 before the operation that failed, its error code for
the operation itself, -2 (runtime inconsistency) after it.
"""

from collections.abc import Sequence

from kazoo.exceptions import EXCEPTIONS, KazooException

from kafka_zookeeper.protocol import OK, ResultError
from kafka_zookeeper.writes import Committed, MultiResult, Refused, RefusedReason

RUNTIME_INCONSISTENCY = -2

REASONS = {
    -101: RefusedReason.NO_NODE,
    -102: RefusedReason.NO_AUTH,
    -103: RefusedReason.BAD_VERSION,
    -110: RefusedReason.NODE_EXISTS,
    -111: RefusedReason.NOT_EMPTY,
}


def outcome_of(results: Sequence[str | int | ResultError | None]) -> MultiResult:
    """Return the outcome from the results of a transaction's operations, in their order."""
    errors = [(index, result.code) for index, result in enumerate(results) if isinstance(result, ResultError)]
    if not errors:
        return Committed(tuple(result for result in results if not isinstance(result, ResultError)))
    for index, code in errors:
        if code not in {OK, RUNTIME_INCONSISTENCY}:
            return Refused(index, REASONS.get(code, RefusedReason.OTHER), error_name(code))
    return Refused(-1, RefusedReason.OTHER, f"error codes {[code for _, code in errors]}")


def refusal_of(error: KazooException) -> Refused:
    """Return the outcome from an error of the whole transaction."""
    return Refused(-1, REASONS.get(getattr(error, "code", OK), RefusedReason.OTHER), repr(error))


def error_name(code: int) -> str:
    """Return kazoo's name of an error code."""
    return str(EXCEPTIONS[code].__name__) if code in EXCEPTIONS else f"error code {code}"
