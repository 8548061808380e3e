"""Requests and responses of CreateAcls, DeleteAcls and DescribeAcls, versions 0 to 3.

Each ACL and each filter succeeds or fails separately. Version 0 has literal patterns only, which is the default of the field that it lacks.
Source: AclApis, AclAuthorizer.createAcls and deleteAcls.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from kafka_node.authorization import acl
from kafka_node.authorization.acls import Acls
from kafka_node.outcomes import Outcome, error_fields
from kafka_wire import Body, ErrorCode, Failure
from kafka_wire.net.server import CloseConnection

_E = TypeVar("_E", acl.ResourceType, acl.PatternType, acl.Operation, acl.Permission)


class AclCreations(Protocol):
    """Additions to the stored ACLs."""

    async def add(self, bindings: Iterable[acl.Binding]) -> Mapping[acl.Binding, Outcome]:
        """Add bindings. Returns the outcome of each binding."""


class AclChanges(AclCreations, Protocol):
    """Changes of the stored ACLs."""

    async def remove(self, bindings: Iterable[acl.Binding]) -> Mapping[acl.Binding, Outcome]:
        """Remove bindings; one that does not exist counts as removed. Returns the outcome of each binding."""


async def create_acls(changes: AclCreations, body: Body) -> Body:
    """Create ACLs; an invalid ACL does not affect the others."""
    requested = [_creation(entry) for entry in body["creations"]]
    outcomes = await changes.add(dict.fromkeys(binding for binding in requested if isinstance(binding, acl.Binding)))
    return {
        "results": [
            error_fields(request if isinstance(request, Failure) else outcomes[request]) for request in requested
        ]
    }


def create_refused(body: Body, failure: Failure) -> Body:
    """Answer every ACL with the same error."""
    return {"results": [error_fields(failure) for _ in body["creations"]]}


def _creation(entry: Body) -> acl.Binding | Failure:
    resource_type = _known(acl.ResourceType, entry["resource_type"])
    pattern_type = _known(acl.PatternType, entry["resource_pattern_type"])
    operation, permission = _known(acl.Operation, entry["operation"]), _known(acl.Permission, entry["permission_type"])
    name = entry["resource_name"]
    message = None
    if resource_type is acl.ResourceType.CLUSTER and name != acl.CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {acl.CLUSTER_NAME}"
    elif not name:
        message = "Invalid empty resource name"
    elif min(resource_type, operation, permission) <= acl.ResourceType.ANY or pattern_type < acl.PatternType.LITERAL:
        message = (
            "An ACL must have one resource type, one operation, one permission, and a literal or prefixed pattern."
        )
    elif ":" not in entry["principal"]:
        message = f"expected a string in format principalType:principalName but got {entry['principal']}"
    if message is not None:
        return Failure(ErrorCode.INVALID_REQUEST, message)
    pattern = acl.Pattern(resource_type, name, pattern_type)
    return acl.Binding(pattern, acl.Entry(entry["principal"], entry["host"], operation, permission))


async def delete_acls(acls: Acls, changes: AclChanges, body: Body) -> Body:
    """Delete the ACLs that match filters; an ACL that matches several filters is listed under the first one."""
    to_delete: dict[acl.Binding, None] = {}
    found: list[list[acl.Binding]] = []
    for acl_filter in requested_filters(body):
        matching = [binding for binding in acls.find(acl_filter) if binding not in to_delete]
        to_delete |= dict.fromkeys(matching)
        found.append(matching)
    return deleted_body(found, await changes.remove(to_delete))


def requested_filters(body: Body) -> list[acl.BindingFilter]:
    """Return the filters of a deletion. Raises CloseConnection."""
    return [_filter(entry) for entry in body["filters"]]


def deleted_body(found: Iterable[list[acl.Binding] | Failure], outcomes: Mapping[acl.Binding, Outcome]) -> Body:
    """Answer a deletion: for each filter its ACLs with their outcomes, or why the filter is refused."""
    return {
        "filter_results": [
            {**error_fields(matching), "matching_acls": []}
            if isinstance(matching, Failure)
            else {
                **error_fields(None),
                "matching_acls": [_matching(binding, outcomes[binding]) for binding in matching],
            }
            for matching in found
        ]
    }


def delete_refused(body: Body, failure: Failure) -> Body:
    """Answer every filter with the same error."""
    return {"filter_results": [{**error_fields(failure), "matching_acls": []} for _ in body["filters"]]}


def _matching(binding: acl.Binding, outcome: Outcome) -> Body:
    return {**error_fields(outcome), **_resource(binding.pattern), **_line(binding.entry)}


def describe_acls(acls: Acls, body: Body) -> Body:
    """List the ACLs that match a filter. Entries with unknown values are omitted, since clients reject them."""
    resources: dict[acl.Pattern, list[Body]] = {}
    for binding in acls.find(_filter(body)):
        if (
            binding.entry.operation is not acl.Operation.UNKNOWN
            and binding.entry.permission is not acl.Permission.UNKNOWN
        ):
            resources.setdefault(binding.pattern, []).append(_line(binding.entry))
    return {
        **error_fields(None),
        "resources": [{**_resource(pattern), "acls": lines} for pattern, lines in resources.items()],
    }


def describe_refused(failure: Failure) -> Body:
    """Answer with an error only."""
    return {**error_fields(failure), "resources": []}


def _filter(entry: Body) -> acl.BindingFilter:
    pattern = acl.PatternFilter(
        _known(acl.ResourceType, entry["resource_type_filter"]),
        entry["resource_name_filter"],
        _known(acl.PatternType, entry["pattern_type_filter"]),
    )
    operation, permission = _known(acl.Operation, entry["operation"]), _known(acl.Permission, entry["permission_type"])
    return acl.BindingFilter(
        pattern, acl.EntryFilter(entry["principal_filter"], entry["host_filter"], operation, permission)
    )


def _known(kinds: type[_E], code: int) -> _E:
    """Read a code. As in Kafka, an unrecognised code is UNKNOWN, and the code of UNKNOWN itself closes the connection."""
    if code == 0:
        raise CloseConnection(f"ACL request contains {kinds.__name__} UNKNOWN")
    return kinds(code) if code in {int(kind) for kind in kinds} else kinds(0)


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
