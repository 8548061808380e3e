"""The plain twin of `controller_core.shell.scheduler`: two scopes, compared by what they name."""

from controller_core.model.scope import Scope


def overlap(one: Scope, other: Scope) -> bool:
    """Whether the two touch a common partition, so that one must wait for the other's writes."""
    if one.everything or other.everything:
        return True
    return (
        not one.topics.isdisjoint(other.topics)
        or not one.partitions.isdisjoint(other.partitions)
        or any(partition.topic in other.topics for partition in one.partitions)
        or any(partition.topic in one.topics for partition in other.partitions)
    )
