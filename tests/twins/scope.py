"""Plain twin of `controller_core.shell.scheduler`: overlap of two scopes."""

from controller_core.model.scope import Scope


def overlap(one: Scope, other: Scope) -> bool:
    """Whether two scopes have a common partition, so that one event must wait for the other."""
    if one.everything or other.everything:
        return True
    return (
        not one.topics.isdisjoint(other.topics)
        or not one.partitions.isdisjoint(other.partitions)
        or any(partition.topic in other.topics for partition in one.partitions)
        or any(partition.topic in one.topics for partition in other.partitions)
    )
