"""Needs of requests: operations on resources, as values, so that the tables of APIs are data."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_wire import Body, ErrorCode

CODES = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""Error code of a denial by resource type (AclEntry.authorizationError)."""


@dataclass(frozen=True, slots=True)
class On:
    """An operation on each resource that the request names.

    `path` leads through arrays to the names: `topics.name`. A null on the path, and a null name, is ignored. `ids` leads to the
    topic ids of the versions that have ids instead of names.
    """

    operation: Operation
    resource_type: ResourceType
    path: str
    ids: str | None = None

    def names(self, body: Body) -> Iterator[str]:
        """List the names in a request. An empty topic name is a placeholder next to an id; no topic has it."""
        for name in walk(body, self.path):
            if name is not None and (name or self.ids is None):
                yield name

    def topic_ids(self, body: Body) -> Iterator[UUID]:
        """List the topic ids in a request."""
        return (topic_id for topic_id in walk(body, self.ids) if topic_id.int) if self.ids is not None else iter(())


@dataclass(frozen=True, slots=True)
class OnName:
    """An operation on one resource, independent of the names in the request."""

    operation: Operation
    resource_type: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class OnAny:
    """An operation on at least one possible resource of the type (KIP-679)."""

    operation: Operation
    resource_type: ResourceType


@dataclass(frozen=True, slots=True)
class OnAll:
    """An operation on every resource of the type: the answer contains resources that the request does not name."""

    operation: Operation
    resource_type: ResourceType


@dataclass(frozen=True, slots=True)
class Either:
    """One of several needs; the denial is that of the last."""

    needs: "tuple[Need, ...]"


@dataclass(frozen=True, slots=True)
class Never:
    """Allowed to super users only: relayed under the controller's identity, a request would get the controller's rights."""

    code: ErrorCode
    reason: str


Need = On | OnName | OnAny | OnAll | Either | Never

Row = tuple[Need, ...] | Callable[[int, Body], tuple[Need, ...]]
"""All needs of an API; or a function of the version and the request that returns them."""


def on_cluster(operation: Operation) -> OnName:
    """Need an operation on the cluster."""
    return OnName(operation, ResourceType.CLUSTER, CLUSTER_NAME)


def walk(value: Any, path: str) -> Iterator[Any]:
    """Yield the values at a path of keys, through every element of arrays on the path.

    >>> list(walk({"topics": [{"name": "a"}, {"name": "b"}]}, "topics.name"))
    ['a', 'b']
    """
    key, _, rest = path.partition(".")
    found = value[key]
    for element in found if isinstance(found, list | tuple) else [found]:
        if not rest:
            yield element
        elif element is not None:
            yield from walk(element, rest)
