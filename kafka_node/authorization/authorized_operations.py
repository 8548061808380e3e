"""Which operations a caller may do on a resource, as one number: the bit of each operation's own number (KIP-430). Pure.

Source: AclEntry.supportedOperations, AuthHelper.authorizedOperations. Leaves out judging (authorizer), and who asks for it.
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
"""What can be done at all, for the two types that the controller is asked about."""


def _everything(_: Operation) -> bool:
    return True


def authorized_operations(resource_type: ResourceType, may: Callable[[Operation], bool] = _everything) -> int:
    """Put the operations together that `may` lets through; without an authorizer these are all.

    >>> bin(authorized_operations(ResourceType.TOPIC, lambda operation: operation is Operation.READ))
    '0b1000'
    """
    return sum(1 << operation for operation in SUPPORTED[resource_type] if may(operation))
