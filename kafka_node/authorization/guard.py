"""Authorization of requests: each request is judged by the currently known ACLs, its principal and the caller's host.

Until the ACLs have been read, only super users get a response: most clients would take a refusal as final. Every denial is logged
with its reason, as in Kafka, and at DEBUG what is allowed. The module table lists the needs of each API; refusal builds the response.
"""

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from uuid import UUID

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.authorizer import Rules, Verdict, authorize, authorize_all, authorize_any
from kafka_node.authorization.needs import CODES, Either, Need, Never, On, OnAll, OnAny, OnName
from kafka_node.authorization.refusal import refusal
from kafka_node.authorization.table import Table, needs_of
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, Failure
from kafka_wire.net.server import CloseConnection

log = logging.getLogger(__name__)

MAX_WAIT_S = 10.0
"""Limit for waiting until the ACLs are read; then the connection is closed and the client retries."""

JUDGED_AT_ONCE = 250
"""Resources that are judged before the event loop runs other tasks: 5 ms with a thousand ACLs."""

SHOWING = {Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
"""Operations by which responses are filtered. Their denials are logged at DEBUG: there could be one for each topic."""


class KnownAcls(Protocol):
    """The cluster's ACLs as known to this process. Each mode stores them elsewhere."""

    @property
    def acls(self) -> Acls:
        """The ACLs, as of now."""

    loaded: asyncio.Event
    """Set when all ACLs have been read; never cleared."""


class Ask(Protocol):
    """Judges operations of one caller on resources."""

    def __call__(self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool = False) -> bool:
        """Return whether the caller may do an operation. Quiet: the denial only filters a response and is logged at DEBUG."""

    def on_all(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Judge an operation on every resource of a type."""


class Guard:
    """The authorizer of a process.

    `topic_name` gives the name of a topic's id, None where there is none; `table` has the needs of every API that a caller may send.
    """

    def __init__(self, known: KnownAcls, rules: Rules, topic_name: Callable[[UUID], str | None], table: Table) -> None:
        self._known = known
        self._rules = rules
        self._topic_name = topic_name
        self._table = table

    async def refuse(self, key: ApiKey, context: RequestContext, body: Body) -> Body | None:
        """Return the refusal of a request whose caller lacks a right that it needs; None: the request is allowed.

        Raises CloseConnection where a refusal cannot be written, and when the ACLs are not known.
        """
        await self.ready(context)
        for index, need in enumerate(needs_of(self._table, key, context.api_version, body)):
            if index % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1:
                await asyncio.sleep(0)
            if (failure := await self._lacks(context, need, body)) is not None:
                return refusal(key, context.api_version, body, failure)
        return None

    async def refuse_by_header(self, key: ApiKey, context: RequestContext) -> Failure | None:
        """Judge a request by its API only, where its needs do not depend on its body; None: it is allowed, or its body decides.

        Raises CloseConnection when the ACLs are not known.
        """
        row = self._table.get(key, ())
        if not isinstance(row, tuple) or not row or not all(isinstance(need, OnName) for need in row):
            return None
        await self.ready(context)
        for need in row:
            if (failure := await self._lacks(context, need, {})) is not None:
                return failure
        return None

    @property
    def is_ready(self) -> bool:
        """Whether the ACLs are known."""
        return self._known.loaded.is_set()

    async def ready(self, context: RequestContext) -> None:
        """Wait, for a bounded time, until the ACLs are known; raises CloseConnection when they are not."""
        if context.principal in self._rules.super_users or self.is_ready:
            return
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                await self._known.loaded.wait()
        except TimeoutError:
            raise CloseConnection("the cluster's ACLs are not known yet") from None

    def asking(self, context: RequestContext) -> Ask:
        """Return a judge of one caller's operations. Denials that only filter an answer are logged at DEBUG."""
        return _Caller(self, context)

    def judge(self, context: RequestContext, need: OnName | OnAll, *, quiet: bool) -> bool:
        """Judge one need of a caller."""
        quiet = quiet or need.operation in SHOWING or need.resource_type is ResourceType.CLUSTER
        return bool(self._judge(context, need, logging.DEBUG if quiet else logging.INFO))

    def allows_on_all(self, context: RequestContext, operation: Operation, resource_type: ResourceType) -> bool:
        """Judge an operation on every resource of a type. False is no denial: single resources may allow it."""
        return bool(self._judge(context, OnAll(operation, resource_type), logging.DEBUG))

    async def _lacks(self, context: RequestContext, need: Need, body: Body) -> Failure | None:
        """Return the failure where the caller does not meet a need, else None."""
        match need:
            case Either(needs=needs):
                failures = [await self._lacks(context, need, body) for need in needs]
                return None if None in failures else failures[-1]
            case Never(code=code, reason=reason):
                return None if context.principal in self._rules.super_users else Failure(code, reason)
            case On():
                return await self._lacks_on(context, need, body)
            case OnName() | OnAny() | OnAll():
                return None if self._judge(context, need) else _denied(need.resource_type)

    async def _lacks_on(self, context: RequestContext, need: On, body: Body) -> Failure | None:
        names = set(need.names(body))
        for topic_id in need.topic_ids(body):
            name = self._topic_name(topic_id)
            if name is None:
                return Failure(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)
            names.add(name)
        for index, name in enumerate(sorted(names)):
            if index % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1:
                await asyncio.sleep(0)
            if not self._judge(context, OnName(need.operation, need.resource_type, name)):
                return _denied(need.resource_type)
        return None

    def _judge(
        self, context: RequestContext, need: OnName | OnAny | OnAll, denied_level: int = logging.INFO
    ) -> Verdict:
        caller = (self._known.acls, self._rules, context.principal, java_host(context.peer_host))
        match need:
            case OnName():
                verdict, name = authorize(*caller, need.operation, need.resource_type, need.name), need.name
            case OnAny():
                verdict, name = authorize_any(*caller, need.operation, need.resource_type), "(any)"
            case OnAll():
                verdict, name = authorize_all(*caller, need.operation, need.resource_type), "(all)"
        level = logging.DEBUG if verdict else denied_level
        if log.isEnabledFor(level):
            extra = {
                "principal": context.principal,
                "host": context.peer_host,
                "operation": need.operation.name,
                "resource": f"{need.resource_type.name}:{name}",
                "reason": verdict.reason,
            }
            log.log(level, "Allowed operation" if verdict else "Denied operation", extra=extra)
        return verdict


@dataclass(frozen=True, slots=True)
class _Caller:
    """Judges for one caller. Implements Ask."""

    guard: Guard
    context: RequestContext

    def __call__(self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool = False) -> bool:
        return self.guard.judge(self.context, OnName(operation, resource_type, name), quiet=quiet)

    def on_all(self, operation: Operation, resource_type: ResourceType) -> bool:
        return self.guard.judge(self.context, OnAll(operation, resource_type), quiet=True)


class _Everything:
    """Allows every operation. Implements Ask."""

    def __call__(self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool = False) -> bool:  # noqa: ARG002
        return True

    def on_all(self, operation: Operation, resource_type: ResourceType) -> bool:  # noqa: ARG002
        """Return True."""
        return True


EVERYTHING: Ask = _Everything()
"""The judge of a process without an authorizer."""


def _denied(resource_type: ResourceType) -> Failure:
    code = CODES[resource_type]
    return Failure(code, code.message)


@lru_cache(maxsize=1024)
def java_host(host: str) -> str:
    """Write an address as Java and so ACLs do: IPv6 in eight groups, a mapped IPv4 address as IPv4.

    >>> java_host("::1"), java_host("::ffff:10.0.0.1")
    ('0:0:0:0:0:0:0:1', '10.0.0.1')
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = (f"{int(group, 16):x}" for group in address.exploded.partition("%")[0].split(":"))
    return ":".join(groups) + (f"%{address.scope_id}" if address.scope_id else "")
