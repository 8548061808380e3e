"""Sizes of replicas: each broker is asked for all that it holds (DescribeLogDirs), in one answer of 22 bytes a replica.

The copy that is being moved between a broker's folders is left aside: the one that counts is the other.
"""

import numpy as np

from balance_analytics.sampling.asking import AskedBroker, AskFailed
from balance_analytics.sampling.layout import Layout
from balance_analytics.sampling.left_out import LeftOut, Reason, What, reason_of
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.log_dir_columns import LogDirColumns, decode_log_dirs

FIRST_VERSION = 1
"""Of DescribeLogDirs; what is said of a user who may not ask came with 3."""


async def ask_sizes(broker: AskedBroker, broker_id: int, layout: Layout, left_out: LeftOut, *, deadline: float) -> None:
    """Fill the sizes of a broker's replicas."""
    try:
        found = await broker.ask(
            ApiKey.DESCRIBE_LOG_DIRS, _everything, decode_log_dirs, deadline=deadline, lowest=FIRST_VERSION
        )
    except AskFailed as why:
        left_out.add(What.SIZES, why.reason, _held(layout, broker_id), str(why))
        return
    if found.error_code != ErrorCode.NONE:
        words = f"{broker.name} tells no sizes: {ErrorCode.of(found.error_code).name}"
        left_out.add(What.SIZES, reason_of(found.error_code), _held(layout, broker_id), words)
        return
    _fill(found, broker_id, layout)
    missing = int(((layout.replicas == broker_id) & (layout.size_bytes < 0)).sum())
    offline = [one.path for one in found.log_dirs if one.error_code != ErrorCode.NONE]
    if offline:
        left_out.add(What.SIZES, Reason.LOG_DIR, missing, f"{broker.name}, offline: {', '.join(offline)}"[:300])
    else:
        left_out.add(What.SIZES, Reason.ABSENT, missing, f"{broker.name} told no size of {missing} replicas")


def unasked(broker_id: int, layout: Layout, left_out: LeftOut) -> None:
    """Count the replicas of a broker that is not there."""
    held = _held(layout, broker_id)
    left_out.add(What.SIZES, Reason.CONNECTION, held, f"broker {broker_id} is not there: {held} replicas")


def _held(layout: Layout, broker_id: int) -> int:
    return int((layout.replicas == broker_id).sum())


def _fill(found: LogDirColumns, broker_id: int, layout: Layout) -> None:
    rows = layout.rows.find(found.topics, found.topic_rows, found.partition_index)
    good = (rows >= 0) & ~found.is_future & (found.size_bytes >= 0)
    rows, sizes = rows[good], found.size_bytes[good]
    is_replica = layout.replicas[rows] == broker_id
    assigned = is_replica.any(axis=1) if is_replica.shape[1] else np.zeros(len(rows), np.bool_)
    place = is_replica[assigned].argmax(axis=1) if assigned.any() else np.zeros(0, np.int64)
    layout.size_bytes[rows[assigned], place] = sizes[assigned]


def _everything(_: int) -> Body:
    return {"topics": None}
