"""CreateAcls, DeleteAcls and DescribeAcls, versions 0 to 3: each ACL, each filter on its own.

ACLs belong to no tenure: any process with a session changes them, as any broker does. Version 0 knows literal patterns alone, which
is the default of the field that it lacks. Without an authorizer the answer is SECURITY_DISABLED.

Source: AclApis, AclAuthorizer.createAcls and deleteAcls. Leaves out the store (metadata_stores) and who may ask.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from controller_core.shell.admin.outcomes import Outcome, error_fields, timed_out
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.store import AclStore, Known
from kafka_node.authorization import acl
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.server import CloseConnection

_E = TypeVar("_E", acl.ResourceType, acl.PatternType, acl.Operation, acl.Permission)

NO_AUTHORIZER = Failure(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
NO_SESSION = timed_out(
    "There is no session with ZooKeeper at the moment, where ACLs are kept; the request may be sent again."
)


class AclService:
    """What the handlers work on: the ACLs that are known, and who changes them while there is a session."""

    def __init__(self, known: Known, keeper: Callable[[], AclStore | None]) -> None:
        self.known = known
        self._keeper = keeper

    async def add(self, bindings: Iterable[acl.Binding]) -> dict[acl.Binding, Outcome]:
        """Write bindings, each pattern's in one change; tells what became of each."""

        def plus(wanted: frozenset[acl.Entry], now: frozenset[acl.Entry]) -> frozenset[acl.Entry]:
            return now | wanted

        return await self._change(bindings, plus)

    async def remove(self, bindings: Iterable[acl.Binding]) -> dict[acl.Binding, Outcome]:
        """Remove bindings, likewise; one that is gone already is removed."""

        def minus(unwanted: frozenset[acl.Entry], now: frozenset[acl.Entry]) -> frozenset[acl.Entry]:
            return now - unwanted

        return await self._change(bindings, minus)

    async def _change(
        self,
        bindings: Iterable[acl.Binding],
        update: Callable[[frozenset[acl.Entry], frozenset[acl.Entry]], frozenset[acl.Entry]],
    ) -> dict[acl.Binding, Outcome]:
        of_pattern: dict[acl.Pattern, list[acl.Binding]] = {}
        for binding in bindings:
            of_pattern.setdefault(binding.pattern, []).append(binding)
        outcomes: dict[acl.Binding, Outcome] = {}
        for pattern, group in of_pattern.items():
            keeper = self._keeper()
            entries = frozenset(binding.entry for binding in group)
            failure = NO_SESSION if keeper is None else await keeper.change(pattern, partial(update, entries))
            outcomes |= dict.fromkeys(group, failure)
        return outcomes


def acl_handlers(service: AclService | None) -> Mapping[ApiKey, RequestHandler]:
    """Make the three handlers; without a service they say that there is no authorizer."""

    async def create(_: RequestContext, body: Body) -> Body:
        return create_refused(body, NO_AUTHORIZER) if service is None else await create_acls(service, body)

    async def delete(_: RequestContext, body: Body) -> Body:
        return delete_refused(body, NO_AUTHORIZER) if service is None else await delete_acls(service, body)

    async def describe(_: RequestContext, body: Body) -> Body:
        if service is None:
            words = "No Authorizer is configured on the broker"
            return describe_refused(Failure(ErrorCode.SECURITY_DISABLED, words))
        return describe_acls(service, body)

    return {ApiKey.CREATE_ACLS: create, ApiKey.DELETE_ACLS: delete, ApiKey.DESCRIBE_ACLS: describe}


async def create_acls(service: AclService, body: Body) -> Body:
    """Write ACLs; one that cannot be refuses no other."""
    asked = [_creation(each) for each in body["creations"]]
    outcomes = await service.add(dict.fromkeys(each for each in asked if isinstance(each, acl.Binding)))
    return {"results": [error_fields(each if isinstance(each, Failure) else outcomes[each]) for each in asked]}


def create_refused(body: Body, failure: Failure) -> Body:
    """Answer every ACL with the same error."""
    return {"results": [error_fields(failure) for _ in body["creations"]]}


def _creation(each: Body) -> acl.Binding | Failure:
    resource_type = _known(acl.ResourceType, each["resource_type"])
    pattern_type = _known(acl.PatternType, each["resource_pattern_type"])
    operation, permission = _known(acl.Operation, each["operation"]), _known(acl.Permission, each["permission_type"])
    name = each["resource_name"]
    words = None
    if resource_type is acl.ResourceType.CLUSTER and name != acl.CLUSTER_NAME:
        words = f"The only valid name for the CLUSTER resource is {acl.CLUSTER_NAME}"
    elif not name:
        words = "Invalid empty resource name"
    elif min(resource_type, operation, permission) <= acl.ResourceType.ANY or pattern_type < acl.PatternType.LITERAL:
        words = "An ACL is for one resource type, one operation and one permission, by a literal name or a prefix."
    elif ":" not in each["principal"]:
        words = f"expected a string in format principalType:principalName but got {each['principal']}"
    if words is not None:
        return Failure(ErrorCode.INVALID_REQUEST, words)
    pattern = acl.Pattern(resource_type, name, pattern_type)
    return acl.Binding(pattern, acl.Entry(each["principal"], each["host"], operation, permission))


async def delete_acls(service: AclService, body: Body) -> Body:
    """Remove what filters mean; an ACL that several mean is told with the first of them."""
    left: dict[acl.Binding, None] = {}
    found: list[list[acl.Binding]] = []
    for asked in [_filter(each) for each in body["filters"]]:
        matching = [binding for binding in service.known.acls.find(asked) if binding not in left]
        left |= dict.fromkeys(matching)
        found.append(matching)
    outcomes = await service.remove(left)
    return {
        "filter_results": [
            {**error_fields(None), "matching_acls": [_matching(each, outcomes[each]) for each in matching]}
            for matching in found
        ]
    }


def delete_refused(body: Body, failure: Failure) -> Body:
    """Answer every filter with the same error."""
    return {"filter_results": [{**error_fields(failure), "matching_acls": []} for _ in body["filters"]]}


def _matching(binding: acl.Binding, outcome: Outcome) -> Body:
    return {**error_fields(outcome), **_resource(binding.pattern), **_line(binding.entry)}


def describe_acls(service: AclService, body: Body) -> Body:
    """List what a filter means. Entries that nobody understands are left out: clients do not take them."""
    resources: dict[acl.Pattern, list[Body]] = {}
    for binding in service.known.acls.find(_filter(body)):
        if (
            binding.entry.operation is not acl.Operation.UNKNOWN
            and binding.entry.permission is not acl.Permission.UNKNOWN
        ):
            resources.setdefault(binding.pattern, []).append(_line(binding.entry))
    return {
        **error_fields(None),
        "resources": [{**_resource(pattern), "acls": acls} for pattern, acls in resources.items()],
    }


def describe_refused(failure: Failure) -> Body:
    """Answer with an error alone."""
    return {**error_fields(failure), "resources": []}


def _filter(each: Body) -> acl.BindingFilter:
    pattern = acl.PatternFilter(
        _known(acl.ResourceType, each["resource_type_filter"]),
        each["resource_name_filter"],
        _known(acl.PatternType, each["pattern_type_filter"]),
    )
    operation, permission = _known(acl.Operation, each["operation"]), _known(acl.Permission, each["permission_type"])
    return acl.BindingFilter(
        pattern, acl.EntryFilter(each["principal_filter"], each["host_filter"], operation, permission)
    )


def _known(kinds: type[_E], code: int) -> _E:
    """Read a code; one that is not known is UNKNOWN, and one that says so ends the connection, as in Kafka."""
    if code == 0:
        raise CloseConnection(f"it asks for ACLs by an unknown {kinds.__name__}")
    return kinds(code) if code in {int(each) for each in kinds} else kinds(0)


def _resource(pattern: acl.Pattern) -> Body:
    return {
        "resource_type": pattern.resource_type,
        "resource_name": pattern.name,
        "pattern_type": pattern.pattern_type,
    }


def _line(entry: acl.Entry) -> Body:
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission,
    }
