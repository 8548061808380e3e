"""How a transaction ended, told by ZooKeeper's answer to it.

Of a transaction that failed, each operation has a result of type error: code 0 before the one that failed, its own code
there, -2 (runtime inconsistency) after it.
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
    """Tell the end by the results of a transaction's operations, in their order."""
    errors = [(index, result.code) for index, result in enumerate(results) if isinstance(result, ResultError)]
    if not errors:
        return Committed(tuple(result for result in results if not isinstance(result, ResultError)))
    for index, code in errors:
        if code not in {OK, RUNTIME_INCONSISTENCY}:
            return Refused(index, REASONS.get(code, RefusedReason.OTHER), name_of(code))
    return Refused(-1, RefusedReason.OTHER, f"error codes {[code for _, code in errors]}")


def refusal_of(error: KazooException) -> Refused:
    """Tell the end by the error that answered all of a transaction at once."""
    return Refused(-1, REASONS.get(getattr(error, "code", OK), RefusedReason.OTHER), repr(error))


def name_of(code: int) -> str:
    """Name an error code as kazoo does."""
    return str(EXCEPTIONS[code].__name__) if code in EXCEPTIONS else f"error code {code}"
