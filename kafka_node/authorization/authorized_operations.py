"""Operations that a caller may do on a resource, as one number: a bit for each operation's number (KIP-430). Pure.

Source: AclEntry.supportedOperations, AuthHelper.authorizedOperations.
"""

from collections.abc import Callable, Mapping

from kafka_node.authorization.acl import Operation, ResourceType

SUPPORTED: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""All operations on a resource, for the types that answers contain."""


def _everything(_: Operation) -> bool:
    return True


def authorized_operations(resource_type: ResourceType, may: Callable[[Operation], bool] = _everything) -> int:
    """Return the operations that `may` allows; without an authorizer these are all.

    >>> bin(authorized_operations(ResourceType.TOPIC, lambda operation: operation is Operation.READ))
    '0b1000'
    """
    return sum(1 << operation for operation in SUPPORTED[resource_type] if may(operation))
