"""CreateAcls, DeleteAcls and DescribeAcls, versions 0 to 3.

Each ACL and each filter succeeds or fails separately. Any process that is connected to the store answers, as any broker does; it need
not be the controller. Version 0 has literal patterns only, which is the default of the field that it lacks. Without an authorizer the
answer is SECURITY_DISABLED.

Source: AclApis, AclAuthorizer.createAcls and deleteAcls.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from controller_core.shell.admin.responses import Outcome, timed_out
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.store import AclCache, AclStore
from kafka_node.authorization import acl, acl_requests
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, Failure

NO_AUTHORIZER = Failure(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
STORE_UNAVAILABLE = timed_out(
    "ACLs cannot be changed at the moment: the metadata store is not available. Retry the request."
)


class AclService:
    """ACLs as the handlers use them: `known` for reading, `store` for changes.

    `store` returns None while the store is not available.
    """

    def __init__(self, known: AclCache, store: Callable[[], AclStore | None]) -> None:
        self.known = known
        self._store = store

    async def add(self, bindings: Iterable[acl.Binding]) -> dict[acl.Binding, Outcome]:
        """Add bindings, one write per pattern. Returns the outcome of each binding."""

        def add(added: frozenset[acl.Entry], current: frozenset[acl.Entry]) -> frozenset[acl.Entry]:
            return current | added

        return await self._change(bindings, add)

    async def remove(self, bindings: Iterable[acl.Binding]) -> dict[acl.Binding, Outcome]:
        """Remove bindings, one write per pattern. A binding that does not exist counts as removed."""

        def remove(removed: frozenset[acl.Entry], current: frozenset[acl.Entry]) -> frozenset[acl.Entry]:
            return current - removed

        return await self._change(bindings, remove)

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
            store = self._store()
            entries = frozenset(binding.entry for binding in group)
            failure = STORE_UNAVAILABLE if store is None else await store.change(pattern, partial(update, entries))
            outcomes |= dict.fromkeys(group, failure)
        return outcomes


def acl_handlers(service: AclService | None) -> Mapping[ApiKey, RequestHandler]:
    """Create the three handlers; without a service they answer that there is no authorizer."""

    async def create(_: RequestContext, body: Body) -> Body:
        return (
            acl_requests.create_refused(body, NO_AUTHORIZER)
            if service is None
            else await acl_requests.create_acls(service, body)
        )

    async def delete(_: RequestContext, body: Body) -> Body:
        return (
            acl_requests.delete_refused(body, NO_AUTHORIZER)
            if service is None
            else await acl_requests.delete_acls(service.known.acls, service, body)
        )

    async def describe(_: RequestContext, body: Body) -> Body:
        if service is None:
            message = "No Authorizer is configured on the broker"
            return acl_requests.describe_refused(Failure(ErrorCode.SECURITY_DISABLED, message))
        return acl_requests.describe_acls(service.known.acls, body)

    return {ApiKey.CREATE_ACLS: create, ApiKey.DELETE_ACLS: delete, ApiKey.DESCRIBE_ACLS: describe}
