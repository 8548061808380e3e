"""Judges callers: by the ACLs that are known now, with what is set beside them, for the host that they come from.

Until the ACLs have been read nobody but super users is answered: to refuse somebody for what is not known yet would be final to most
clients. Every denial is logged with its reason, as Kafka does.

Leaves out what a request needs (table) and how a refusal is written (refusal).
"""

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from uuid import UUID

from controller_core.cluster.authorizer import Rules, Verdict, authorize, authorize_all, authorize_any
from controller_core.model.acl import Operation, ResourceType
from controller_core.model.errors import Failure
from controller_core.shell.authorization.needs import CODES, Either, Need, Never, On, OnAll, OnAny, OnName
from controller_core.shell.authorization.refusal import refusal
from controller_core.shell.authorization.table import NEEDS, needs_of
from controller_core.shell.front.context import RequestContext
from controller_core.shell.metadata_stores import Known
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.server import CloseConnection

log = logging.getLogger(__name__)

MAX_WAIT_S = 10.0
"""How long a caller waits for the ACLs to be read; after that it asks elsewhere or again."""

JUDGED_AT_ONCE = 250
"""Resources that are judged before other requests have their turn: 5 ms where there are a thousand ACLs."""

SHOWING = {Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
"""Operations by which answers are filtered: their denials would be as many as there are topics."""


class Ask(Protocol):
    """Tells whether one caller may do an operation on a resource."""

    def __call__(self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool = False) -> bool:
        """Judge; a quiet question is none that anything depends on, and its denial is no news."""

    def on_all(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Judge an operation on every resource of a type."""


class Guard:
    """The authorizer of a process. `topic_name` gives the name of a topic's id, None where there is none."""

    def __init__(self, known: Known, rules: Rules, topic_name: Callable[[UUID], str | None]) -> None:
        self._known = known
        self._rules = rules
        self._topic_name = topic_name

    async def refuse(self, key: ApiKey, context: RequestContext, body: Body) -> Body | None:
        """Give the answer to a request whose caller lacks something that it needs; None: it may go on.

        Raises CloseConnection where a refusal cannot be written, and when the ACLs are not known.
        """
        await self.ready(context)
        for index, need in enumerate(needs_of(key, context.api_version, body)):
            if index % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1:
                await asyncio.sleep(0)
            if (failure := await self._lacks(context, need, body)) is not None:
                return refusal(key, context.api_version, body, failure)
        return None

    async def refuse_by_header(self, key: ApiKey, context: RequestContext) -> Failure | None:
        """Judge a request by its API only, where what it needs does not depend on its body; None: it may go on, or its body decides.

        Raises CloseConnection when the ACLs are not known.
        """
        row = NEEDS.get(key, ())
        if not isinstance(row, tuple) or not row or not all(isinstance(need, OnName) for need in row):
            return None
        await self.ready(context)
        for need in row:
            if (failure := await self._lacks(context, need, {})) is not None:
                return failure
        return None

    async def ready(self, context: RequestContext) -> None:
        """Wait, for a bounded time, until the ACLs are known; raises CloseConnection when they are not."""
        if context.principal in self._rules.super_users or self._known.loaded.is_set():
            return
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                await self._known.loaded.wait()
        except TimeoutError:
            raise CloseConnection("the cluster's ACLs are not known yet") from None

    def asking(self, context: RequestContext) -> Ask:
        """Judge for one caller. What may not be shown, and what is asked first of two, is no news to a log."""
        return _Caller(self, context)

    def judge(self, context: RequestContext, need: OnName | OnAll, *, quiet: bool) -> bool:
        """Judge one need of a caller."""
        quiet = quiet or need.operation in SHOWING or need.resource_type is ResourceType.CLUSTER
        return bool(self._judge(context, need, logging.DEBUG if quiet else logging.INFO))

    def allows_on_all(self, context: RequestContext, operation: Operation, resource_type: ResourceType) -> bool:
        """Judge an operation on every resource of a type. False is no denial: single resources may allow it."""
        return bool(self._judge(context, OnAll(operation, resource_type), logging.DEBUG))

    async def _lacks(self, context: RequestContext, need: Need, body: Body) -> Failure | None:
        """Tell what the caller lacks of a need."""
        match need:
            case Either(needs=needs):
                failures = [await self._lacks(context, each, body) for each in needs]
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
        who = (self._known.acls, self._rules, context.principal, java_host(context.peer_host))
        match need:
            case OnName():
                verdict, name = authorize(*who, need.operation, need.resource_type, need.name), need.name
            case OnAny():
                verdict, name = authorize_any(*who, need.operation, need.resource_type), "(any)"
            case OnAll():
                verdict, name = authorize_all(*who, need.operation, need.resource_type), "(all)"
        if not verdict and log.isEnabledFor(denied_level):
            extra = {
                "principal": context.principal,
                "host": context.peer_host,
                "operation": need.operation.name,
                "resource": f"{need.resource_type.name}:{name}",
                "why": verdict.reason,
            }
            log.log(denied_level, "denied", extra=extra)
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


def _denied(resource_type: ResourceType) -> Failure:
    code = CODES[resource_type]
    return Failure(code, code.message)


@lru_cache(maxsize=1024)
def java_host(host: str) -> str:
    """Write an address as Java does, and so as it stands in ACLs: IPv6 in eight groups, IPv4 as such when it is mapped.

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
