"""Simple implementation of `balance_analytics.moves.partition_loads`: rows sorted as tuples."""

from typing import Any


def rows_in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sort rows of the columns NEEDED by topic and partition; loads are whole numbers, 0 where unknown, then whether they are known."""

    def whole(number: float | None) -> int:
        return 0 if number is None else round(max(number, 0))

    return [
        (topic, partition, leader, tuple(replicas), whole(rate), whole(out), whole(size), None not in (rate, size))
        for topic, partition, leader, replicas, rate, out, size in sorted(rows, key=lambda row: row[:2])
    ]
