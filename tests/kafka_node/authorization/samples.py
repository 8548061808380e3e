"""A request of any API and version with one element in each array, and callers with few rights."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from controller_core.zookeeper_mode.required_rights import NEEDS
from kafka_node.authorization.acl import Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.authorizer import Rules
from kafka_node.authorization.guard import Guard
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, codec, schema
from kafka_wire.schema import Field

TOPIC_ID = UUID(int=5)
ADMIN = "User:admin"
ALICE = "User:alice"
OF_KIND: dict[str, Any] = {
    "string": "x",
    "bool": True,
    "bytes": b"x",
    "uuid": TOPIC_ID,
    "float64": 1.0,
    "records": None,
}

Right = tuple[Operation, ResourceType, str]


class Known:
    """Implements KnownAcls."""

    def __init__(self) -> None:
        self.acls = Acls()
        self.loaded = asyncio.Event()


def sample(key: ApiKey, version: int) -> Body:
    """Build a request, encode it and decode it as a handler gets it."""
    name = key.message + "Request"
    body = _struct(schema.definition(name, version).fields, version)
    return codec.decode(name, version, codec.encode(name, version, body))


def _struct(fields: Sequence[Field], version: int) -> Body:
    return {field.key: _value(field, version) for field in fields if version in field.versions}


def _value(field: Field, version: int) -> Any:
    one = _struct(field.fields, version) if field.fields else OF_KIND.get(field.kind, 1)
    return [one] if field.is_array else one


def versions_of(key: ApiKey) -> range:
    """Return the versions of an API that the codec supports, from 0."""
    return range(codec.versions(key.message + "Request")[1] + 1)


def by_name(key: ApiKey) -> str:
    """Return the name of an API for the id of a test."""
    return key.message


def context(version: int = 0, principal: str = ALICE, host: str = "10.0.0.1") -> RequestContext:
    """The context of a request."""
    return RequestContext("CLIENT", None, host, 1, version, principal)


def guard_of(*rights: Right, denied: Sequence[Right] = (), name: str | None = "x", everyone: bool = False) -> Guard:
    """A guard with the table of ZooKeeper mode, where alice has `rights` and not `denied`. Every topic id has the name `name`."""
    known = Known()
    known.loaded.set()
    entries: dict[Pattern, set[Entry]] = {}
    for permission, given in ((Permission.ALLOW, rights), (Permission.DENY, denied)):
        for operation, resource_type, resource in given:
            pattern = Pattern(resource_type, resource, PatternType.LITERAL)
            entries.setdefault(pattern, set()).add(Entry(ALICE, "*", operation, permission))
    for pattern, of_pattern in entries.items():
        known.acls.put(pattern, of_pattern)
    return Guard(known, Rules(frozenset({ADMIN}), everyone), lambda _: name, NEEDS)
