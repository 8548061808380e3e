"""Control plane of a broker that is alone: it leads every partition, and answers the requests that controllers answer.

A change is decided, then on the disk, then applied: the view, then the logs. Changes are made one after another. After a crash the next
start continues from the file: it creates logs that are missing and deletes those of deleted topics.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from kafka_node.authorization import acl
from kafka_node.authorization.acl_requests import (
    create_acls,
    create_refused,
    delete_acls,
    delete_refused,
    describe_acls,
    describe_refused,
)
from kafka_node.authorization.guard import EVERYTHING, Ask
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from kafka_node.outcomes import Outcome, error_fields
from kafka_node.scram_requests import altered, altered_users, describe_users, refused
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode, Failure
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import BrokerSide, ControlPlaneError, IsrAnswer, IsrProposal, ProducerIdBlock
from light_broker.control.standalone import one_node
from light_broker.control.standalone.configs import alter_configs
from light_broker.control.standalone.state import State
from light_broker.control.standalone.state_file import StateFile
from light_broker.control.standalone.topics import create_partitions, create_topics, delete_topics
from light_broker.core.metadata_view import BrokerView, MetadataView

log = logging.getLogger(__name__)

PRODUCER_ID_BLOCK = 1_000
"""Producer ids that one write reserves (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE)."""

FORWARDED: Mapping[ApiKey, VersionRange] = {
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.UPDATE_FEATURES: (0, 2),
}
"""The versions of Kafka 4.3.1."""

NO_AUTHORIZER = Failure(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


class StandaloneControl:
    """Implements ControlPlane. `broker` describes this broker for clients, `settings` returns its current settings."""

    def __init__(
        self,
        file: StateFile,
        broker: Callable[[], BrokerView],
        settings: Callable[[], Settings],
        judge: Callable[[RequestContext], Ask],
        *,
        has_authorizer: bool,
    ) -> None:
        self._file = file
        self._broker = broker
        self._settings = settings
        self._judge = judge
        self._has_authorizer = has_authorizer
        self._side: BrokerSide | None = None
        self._lock = asyncio.Lock()
        """Held from a decision to its effect."""
        self._handlers: Mapping[ApiKey, Callable[[RequestContext, Body], Awaitable[Body]]] = {
            ApiKey.CREATE_TOPICS: self._create_topics,
            ApiKey.DELETE_TOPICS: self._delete_topics,
            ApiKey.CREATE_PARTITIONS: self._create_partitions,
            ApiKey.ALTER_CONFIGS: self._alter_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._incremental_alter_configs,
            ApiKey.ELECT_LEADERS: self._elect_leaders,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self._alter_reassignments,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self._list_reassignments,
            ApiKey.DESCRIBE_CLIENT_QUOTAS: self._describe_quotas,
            ApiKey.UPDATE_FEATURES: self._update_features,
            ApiKey.DESCRIBE_ACLS: self._describe_acls,
            ApiKey.CREATE_ACLS: self._create_acls,
            ApiKey.DELETE_ACLS: self._delete_acls,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self._describe_scram,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: self._alter_scram,
        }

    @property
    def forwarded(self) -> Mapping[ApiKey, VersionRange]:
        """All requests that this control plane answers."""
        return FORWARDED

    @property
    def of_brokers(self) -> Mapping[ApiKey, VersionRange]:
        """No requests: there are no others."""
        return {}

    @property
    def cluster_id(self) -> str:
        """Id of the cluster of this broker alone."""
        return self._file.state.cluster_id

    @property
    def broker_epoch(self) -> int:
        """Number of starts of this broker."""
        return self._file.state.broker_epoch

    async def start(self, broker: BrokerSide) -> None:
        """Deliver the metadata, and let the broker lead all partitions."""
        self._side = broker
        state = self._file.state
        broker.set_acls(state.known_acls())
        broker.set_credentials(state.credentials())
        view = self._view()
        broker.set_view(view)
        for name in list(state.deletions):
            await self._finish_deletion(name)
        for name, topic in state.topics.items():
            await self._lead(view, name, range(topic.partitions))

    async def failed(self) -> None:
        """Wait without end."""
        await asyncio.Event().wait()

    async def log_directory_failed(
        self, _directory_id: uuid.UUID | None, _partitions: Iterable[TopicPartition]
    ) -> None:
        """Do nothing: no other broker could lead the partitions."""

    async def close(self) -> None:
        """Wait for a change that is being written."""
        async with self._lock:
            self._side = None

    async def controlled_shutdown(self) -> None:
        """Move nothing: there is no other broker."""

    async def alter_partition(self, proposal: IsrProposal) -> IsrAnswer:
        """Refuse: the only replica is the ISR."""
        return IsrAnswer(ErrorCode.INVALID_REQUEST, self._view().partition(proposal.partition))

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Reserve the next block."""
        async with self._lock:
            state = self._file.state
            await self._file.save(replace(state, next_producer_id=state.next_producer_id + PRODUCER_ID_BLOCK))
            return ProducerIdBlock(state.next_producer_id, PRODUCER_ID_BLOCK)

    async def create_topics(self, request: Body) -> Body:
        """Create topics as this broker itself; each has one replica, whatever its usual replication factor is."""
        topics = [{**topic, "replication_factor": 1} for topic in request["topics"]]
        return await self._create({**request, "topics": topics, "validate_only": False}, EVERYTHING)

    async def forward(self, key: ApiKey, context: RequestContext, body: Body) -> Body:
        """Answer a request of a client."""
        return await self._handlers[key](context, body)

    # Topics

    async def _create_topics(self, context: RequestContext, body: Body) -> Body:
        return await self._create(body, self._judge(context))

    async def _create(self, body: Body, may: Ask) -> Body:
        async with self._lock:
            before = self._file.state
            state, answer = create_topics(before, body, may, self._settings(), uuid.uuid4)
            view = await self._save(state)
            for name in state.topics.keys() - before.topics.keys():
                await self._lead(view, name, range(state.topics[name].partitions), is_new=True)
            return answer

    async def _delete_topics(self, context: RequestContext, body: Body) -> Body:
        async with self._lock:
            before = self._file.state
            state, answer = delete_topics(before, context.api_version, body, self._judge(context), self._settings())
            await self._save(state)
            for name in before.topics.keys() - state.topics.keys():
                await self._finish_deletion(name)
            return answer

    async def _create_partitions(self, context: RequestContext, body: Body) -> Body:
        async with self._lock:
            before = self._file.state
            state, answer = create_partitions(before, body, self._judge(context))
            view = await self._save(state)
            for name, topic in state.topics.items():
                await self._lead(view, name, range(before.topics[name].partitions, topic.partitions), is_new=True)
            return answer

    async def _lead(self, view: MetadataView, name: str, partitions: Iterable[int], *, is_new: bool = False) -> None:
        """Let the broker lead partitions. One that it cannot lead is offline until its directory is repaired; its error is logged there."""
        side, topic = self._require_side(), view.topics[name]
        for number in partitions:
            await side.lead(TopicPartition(name, number), topic.id, topic.partitions[number], is_new=is_new)

    async def _finish_deletion(self, name: str) -> None:
        """Delete the logs of a deleted topic. Where that fails, the next start tries again."""
        side, count = self._require_side(), self._file.state.deletions[name]
        errors = [await side.stop(TopicPartition(name, number), delete=True) for number in range(count)]
        if any(error is not ErrorCode.NONE for error in errors):
            return
        try:
            await self._file.save(self._file.state.with_deletion_done(name))
        except ControlPlaneError as error:
            log.warning("Failed to note that a topic is deleted", extra={"topic": name, "error": str(error)})

    # What one node answers without a change

    async def _elect_leaders(self, _: RequestContext, body: Body) -> Body:
        return one_node.elect_leaders(self._file.state, body)

    async def _list_reassignments(self, _context: RequestContext, _body: Body) -> Body:
        return one_node.list_reassignments()

    async def _alter_reassignments(self, _: RequestContext, body: Body) -> Body:
        return one_node.alter_reassignments(self._file.state, body)

    async def _update_features(self, _: RequestContext, body: Body) -> Body:
        return one_node.update_features(self._file.state, body)

    async def _describe_quotas(self, _context: RequestContext, _body: Body) -> Body:
        return one_node.describe_client_quotas()

    # Configs

    async def _alter_configs(self, context: RequestContext, body: Body) -> Body:
        return await self._change_configs(context, body, incremental=False)

    async def _incremental_alter_configs(self, context: RequestContext, body: Body) -> Body:
        return await self._change_configs(context, body, incremental=True)

    async def _change_configs(self, context: RequestContext, body: Body, *, incremental: bool) -> Body:
        async with self._lock:
            state, answer = alter_configs(
                self._file.state, body, self._judge(context), self._settings(), incremental=incremental
            )
            await self._save(state)
            return answer

    # ACLs

    async def _describe_acls(self, _: RequestContext, body: Body) -> Body:
        if not self._has_authorizer:
            return describe_refused(Failure(NO_AUTHORIZER.code, "No Authorizer is configured on the broker"))
        return describe_acls(self._file.state.known_acls(), body)

    async def _create_acls(self, _: RequestContext, body: Body) -> Body:
        return await create_acls(self, body) if self._has_authorizer else create_refused(body, NO_AUTHORIZER)

    async def _delete_acls(self, _: RequestContext, body: Body) -> Body:
        if not self._has_authorizer:
            return delete_refused(body, NO_AUTHORIZER)
        return await delete_acls(self._file.state.known_acls(), self, body)

    async def add(self, bindings: Iterable[acl.Binding]) -> Mapping[acl.Binding, Outcome]:
        """Add ACLs (AclChanges)."""
        return await self._change_acls(bindings, lambda current, given: current | given)

    async def remove(self, bindings: Iterable[acl.Binding]) -> Mapping[acl.Binding, Outcome]:
        """Remove ACLs (AclChanges)."""
        return await self._change_acls(bindings, lambda current, given: current - given)

    async def _change_acls(
        self,
        bindings: Iterable[acl.Binding],
        change: Callable[[frozenset[acl.Binding], frozenset[acl.Binding]], frozenset[acl.Binding]],
    ) -> Mapping[acl.Binding, Outcome]:
        given = frozenset(bindings)
        async with self._lock:
            state = self._file.state
            await self._file.save(replace(state, acls=change(state.acls, given)))
            self._require_side().set_acls(self._file.state.known_acls())
        return dict.fromkeys(given)

    # SCRAM users

    async def _alter_scram(self, _: RequestContext, body: Body) -> Body:
        users = altered_users(body)
        outcomes: dict[str, Outcome] = dict(refused(body))
        async with self._lock:
            scram = dict(self._file.state.scram)
            for user in users:
                if user in outcomes:
                    continue
                wanted = altered(scram.get(user, {}), user=user, body=body)
                outcomes[user] = wanted if isinstance(wanted, Failure) else None
                if not isinstance(wanted, Failure):
                    scram[user] = wanted
            state = replace(
                self._file.state, scram={user: credentials for user, credentials in scram.items() if credentials}
            )
            await self._file.save(state)
            self._require_side().set_credentials(state.credentials())
        return {"results": [{"user": user, **error_fields(outcomes[user])} for user in users]}

    async def _describe_scram(self, _: RequestContext, body: Body) -> Body:
        return describe_users(body, dict(sorted(self._file.state.scram.items())))

    # State

    async def _save(self, state: State) -> MetadataView:
        """Write a state, let requests see it, and return its metadata."""
        is_changed = state != self._file.state
        await self._file.save(state)
        view = self._view()
        if is_changed:
            self._require_side().set_view(view)
        return view

    def _view(self) -> MetadataView:
        return self._file.state.view(self._broker())

    def _require_side(self) -> BrokerSide:
        if self._side is None:
            raise ControlPlaneError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker is stopping")
        return self._side
