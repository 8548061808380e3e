"""Name of a partition."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the name of the partition's folder.

        >>> str(TopicPartition("orders", 3))
        'orders-3'
        """
        return f"{self.topic}-{self.partition}"
