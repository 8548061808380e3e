"""CreateAcls, DeleteAcls and DescribeAcls in KRaft mode, versions 1 to 3.

The active controller changes ACLs; every controller lists those that are committed, as Kafka's authorizer does. Source: AclApis,
AclControlManager.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from uuid import UUID

from controller_core.metadata.acl_changes import create_acls as create
from controller_core.metadata.acl_changes import delete_acls as delete
from controller_core.shell.admin.acls import NO_AUTHORIZER
from controller_core.shell.kraft.port import MetadataController
from kafka_node.authorization import acl, acl_requests, guard
from kafka_node.context import RequestContext
from kafka_node.outcomes import Outcome
from kafka_wire import Body


class AclApis:
    """The handlers. `known` has the committed ACLs of the authorizer, None without one; `ids` draws random ids without end."""

    def __init__(self, controller: MetadataController, known: guard.KnownAcls | None, ids: Iterator[UUID]) -> None:
        self._controller = controller
        self._known = known
        self._ids = ids

    async def create(self, _context: RequestContext, body: Body) -> Body:
        """Create ACLs, all in one batch."""
        return (
            acl_requests.create_refused(body, NO_AUTHORIZER)
            if self._known is None
            else await acl_requests.create_acls(self, body)
        )

    async def delete(self, _context: RequestContext, body: Body) -> Body:
        """Delete the ACLs that filters select at the time of the decision."""
        if self._known is None:
            return acl_requests.delete_refused(body, NO_AUTHORIZER)
        found = await self._controller.write(partial(delete, filters=acl_requests.requested_filters(body)))
        deleted = [binding for bindings in found if isinstance(bindings, list) for binding in bindings]
        return acl_requests.deleted_body(found, dict.fromkeys(deleted))

    async def describe(self, _context: RequestContext, body: Body) -> Body:
        """List ACLs."""
        return (
            acl_requests.describe_refused(NO_AUTHORIZER)
            if self._known is None
            else acl_requests.describe_acls(self._known.acls, body)
        )

    async def add(self, bindings: Iterable[acl.Binding]) -> Mapping[acl.Binding, Outcome]:
        """Add bindings. Returns the outcome of each binding."""
        added = tuple(bindings)
        await self._controller.write(partial(create, bindings=added, ids=self._ids))
        return dict.fromkeys(added)
