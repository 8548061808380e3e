"""Name of a partition, as in requests."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the name as logs and folders have it.

        >>> str(TopicPartition("orders", 3))
        'orders-3'
        """
        return f"{self.topic}-{self.partition}"
