"""The Admin port on a client of the cluster: the metrics and the deadline of each call, and its failure as an AdminError.

Every call may be repeated: the engine's next read shows effects of an earlier call, or the response is "already exists".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from kafka_operator.admin import requests
from kafka_operator.admin.broker_roles import only_brokers
from kafka_operator.admin.brokers import (
    change_broker_configs,
    change_log_dirs,
    query_broker_configs,
    query_disks,
    query_log_dirs,
    query_logs,
    query_replica_dirs,
)
from kafka_operator.admin.cluster_metrics import query_cluster_metrics, query_versions
from kafka_operator.admin.connection import OPERATION_TIMEOUT_MS, Connection
from kafka_operator.admin.connection_errors import classify_connection_error
from kafka_operator.admin.group_lag import query_group_lags
from kafka_operator.admin.health import query_health, query_min_isr
from kafka_operator.admin.login import make_credentials
from kafka_operator.admin.port import (
    CallRefusedError,
    ClusterUnreachableError,
    ControllerUnavailableError,
    Refusals,
)
from kafka_operator.admin.quorum import controller_of, query_quorum
from kafka_operator.admin.requests import TOPIC, Request
from kafka_operator.admin.tls import make_context
from kafka_operator.decide.clusters.cluster_metrics import ClusterMetrics
from kafka_operator.decide.elections.election import Elect
from kafka_operator.decide.kafka.kafka_errors import NO_REASSIGNMENT_IN_PROGRESS
from kafka_operator.decide.kafka.layout import BrokerDisks, BrokerSizes, Layout
from kafka_operator.decide.kafka.log_dirs import BrokerLogDirs
from kafka_operator.decide.kafka.observed import ConfigValue, Failure, KafkaTopic, Moves, ObservedCluster
from kafka_operator.decide.kafka.replica_dirs import BrokerReplicaDirs, Targets
from kafka_operator.decide.kafka.replica_health import ReplicaHealth
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.cluster import Versions
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import PLAINTEXT, Security
from kafka_wire import Body, ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.net.client import Backoff, NodeSettings, RequestFailed
from kafka_wire.net.cluster import ClusterClient, NoMetadata, parse_bootstrap
from reconciler.names import COMPONENT

METADATA_TIMEOUT_MS = 5_000
"""Timeout of the first response of any broker: a live broker answers within milliseconds."""

REQUEST_TIMEOUT_MS = 15_000
"""Timeout of a response; longer than the broker's own limit of an operation, so that the broker's error arrives first."""

CALL_TIMEOUT_S = 40.0
"""Time for all requests of a call: two attempts, each with a search for the controller."""

RECONNECT_BACKOFF = Backoff(initial_ms=50, cap_ms=500)
"""The engine backs off on its own; the client's own back-off only keeps it from spinning."""

T = TypeVar("T")


class KafkaAdmin:
    """One cluster; its connections are opened when they are needed."""

    def __init__(self, bootstrap_servers: Sequence[str], metrics: KafkaMetrics, security: Security = PLAINTEXT) -> None:
        """BadCredentialsError when a part of `security` cannot be used, ValueError for a server that is not HOST:PORT."""
        settings = NodeSettings(
            client_id=COMPONENT,
            ssl=make_context(security),
            sasl=make_credentials(security),
            connect_timeout_ms=METADATA_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            backoff=RECONNECT_BACKOFF,
        )
        bootstrap = parse_bootstrap(bootstrap_servers)
        self._client = ClusterClient(bootstrap, settings, metadata_timeout_ms=METADATA_TIMEOUT_MS)
        self._metrics = metrics
        self._controllers_only: dict[int, bool] = {}

    async def describe_cluster(self) -> ObservedCluster:
        """Return the cluster's id, controller and brokers; a dedicated controller is not counted as a broker."""

        async def work(connection: Connection) -> ObservedCluster:
            found = await connection.cluster()
            nodes = [broker.node_id for broker in found.brokers]
            broker_ids = await only_brokers(connection, found.controller_id, nodes, self._controllers_only)
            quorum = await query_quorum(connection)
            return ObservedCluster(
                found.cluster_id or "", controller_of(found.controller_id, quorum), broker_ids, quorum
            )

        return await self._call("describe_cluster", work)

    async def describe_topics(self, names: Sequence[str]) -> Mapping[str, KafkaTopic | Failure]:
        """Return the topics that exist, without their settings, as the controller sees them."""
        if not names:
            return {}
        response = await self._call("describe_topics", lambda connection: connection.topics(names))
        return requests.topics_of(response)

    async def describe_configs(
        self, wanted: Mapping[str, frozenset[str]]
    ) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        """Return those of the wanted settings that are set on the topics themselves."""
        if not wanted:
            return {}
        request = requests.describe_configs_request(TOPIC, wanted)
        return requests.configs_of(await self._controller_call("describe_configs", request, "results"))

    async def describe_all_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        """Return all settings that are set on the topics themselves."""
        request = requests.describe_configs_request(TOPIC, dict.fromkeys(names))
        return requests.configs_of(await self._controller_call("describe_configs", request, "results"))

    async def create_topics(self, topics: Sequence[CreateTopic], *, validate_only: bool = False) -> Refusals:
        """Create topics, or only validate the request."""
        request = requests.create_topics_request(topics, OPERATION_TIMEOUT_MS, validate_only=validate_only)
        response = await self._controller_call(_named("create_topics", validate_only), request, "topics")
        return requests.refused_topics(response["topics"])

    async def grow_topics(self, topics: Sequence[GrowTopic], *, validate_only: bool = False) -> Refusals:
        """Add partitions, or only validate the request."""
        request = requests.create_partitions_request(topics, OPERATION_TIMEOUT_MS, validate_only=validate_only)
        response = await self._controller_call(_named("create_partitions", validate_only), request, "results")
        return requests.refused_topics(response["results"])

    async def alter_configs(self, topics: Sequence[AlterConfig], *, validate_only: bool = False) -> Refusals:
        """Set and reset settings of topics, or only validate the request."""
        request = requests.alter_configs_request(topics, validate_only=validate_only)
        response = await self._controller_call(_named("alter_configs", validate_only), request, "responses")
        return requests.refused_topics(response["responses"], "resource_name")

    async def delete_topics(self, names: Sequence[str]) -> Refusals:
        """Delete topics and their data."""
        request = requests.delete_topics_request(names, OPERATION_TIMEOUT_MS)
        response = await self._controller_call("delete_topics", request, "responses")
        return requests.refused_topics(response["responses"])

    async def list_reassignments(self) -> Moves:
        """Return all partitions that are being reassigned."""
        request = requests.list_reassignments_request(OPERATION_TIMEOUT_MS)
        response = await self._controller_call("list_reassignments", request)
        _raise_refusal(response)
        return requests.moves_of(response)

    async def alter_reassignments(
        self, targets: Mapping[Partition, tuple[int, ...] | None]
    ) -> Mapping[Partition, Failure]:
        """Start and cancel moves; a move that has ended counts as cancelled."""
        request = requests.alter_reassignments_request(targets, OPERATION_TIMEOUT_MS)
        response = await self._controller_call("alter_reassignments", request)
        _raise_refusal(response)
        return {
            partition: failure
            for partition, failure in requests.refused_partitions(response).items()
            if not (targets.get(partition) is None and failure.code == NO_REASSIGNMENT_IN_PROGRESS)
        }

    async def describe_health(self) -> ReplicaHealth:
        """Return the locations of all replicas of all partitions, as the controller sees them, without min_isr."""
        return await self._call("describe_health", lambda connection: query_health(connection, self._controllers_only))

    async def describe_min_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return the effective min.insync.replicas of each topic; topics without a response are missing."""
        return await self._call("describe_min_isr", lambda connection: query_min_isr(connection, topics))

    async def describe_layout(self, names: Sequence[str] | None) -> Layout:
        """Return topics and racks as the controller sees them, without dedicated controllers."""

        async def work(connection: Connection) -> Layout:
            response = await connection.topics(names)
            nodes = [broker["node_id"] for broker in response["brokers"]]
            brokers = await only_brokers(connection, response["controller_id"], nodes, self._controllers_only)
            return await asyncio.to_thread(requests.layout_of, response, brokers)

        return await self._call("describe_layout", work)

    async def describe_log_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerSizes:
        """Return the bytes of logs, queried from each broker."""
        return await self._call("describe_log_dirs", lambda connection: query_logs(connection, broker_ids, partitions))

    async def describe_disks(self, broker_ids: Collection[int]) -> BrokerDisks:
        """Return the disks of brokers, queried from each of them."""
        return await self._call("describe_disks", lambda connection: query_disks(connection, broker_ids))

    async def describe_log_dir_states(self, broker_ids: Collection[int]) -> BrokerLogDirs:
        """Return the states of the log directories, queried from each broker."""
        return await self._call("describe_log_dir_states", lambda connection: query_log_dirs(connection, broker_ids))

    async def describe_replica_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerReplicaDirs:
        """Return the log directories with their logs, queried from each broker."""
        return await self._call(
            "describe_replica_dirs", lambda connection: query_replica_dirs(connection, broker_ids, partitions)
        )

    async def move_log_dirs(self, targets: Targets) -> Mapping[Partition, Failure]:
        """Move replicas to other log directories, by a request to each broker."""
        return await self._call("move_log_dirs", lambda connection: change_log_dirs(connection, targets))

    async def describe_broker_configs(
        self, broker_ids: Collection[int], names: Sequence[str]
    ) -> Mapping[int, Mapping[str, str] | Failure]:
        """Return the settings of single brokers, queried from each of them."""
        return await self._call(
            "describe_broker_configs", lambda connection: query_broker_configs(connection, broker_ids, names)
        )

    async def alter_broker_configs(self, changes: Sequence[AlterBroker]) -> Mapping[int, Failure]:
        """Change settings of single brokers."""
        return await self._call("alter_broker_configs", lambda connection: change_broker_configs(connection, changes))

    async def elect_leaders(self, wanted: Elect) -> Mapping[Partition, Failure]:
        """Elect leaders where needed; no need for an election is no failure."""
        request = requests.elect_leaders_request(wanted, OPERATION_TIMEOUT_MS)
        response = await self._call(
            "elect_leaders", lambda connection: connection.to_controller(request, requests.election_codes)
        )
        _raise_refusal(response)
        return requests.failed_elections(response)

    async def describe_cluster_metrics(self) -> ClusterMetrics:
        """Return the numbers of all partitions, as the controller sees them."""
        return await self._call("describe_cluster_metrics", query_cluster_metrics)

    async def describe_versions(self, broker_ids: Collection[int]) -> Versions:
        """Return the software versions of these brokers."""
        return await self._call("describe_versions", lambda connection: query_versions(connection, broker_ids))

    async def describe_group_lags(self, groups: Collection[str]) -> Mapping[str, int | Failure]:
        """Return the lag of each consumer group, in records over all of its partitions."""
        return await self._call("describe_group_lags", lambda connection: query_group_lags(connection, groups))

    async def close(self) -> None:
        """Close the connections; calls in progress fail."""
        await self._client.close()

    async def _controller_call(self, name: str, request: Request, results: str | None = None) -> Body:
        """Send one request to the controller. Error codes are those of `results` in the response, or (None) its own."""

        def codes_of(response: Body) -> Iterable[int]:
            return [item["error_code"] for item in ([response] if results is None else response[results])]

        return await self._call(name, lambda connection: connection.to_controller(request, codes_of))

    async def _call(self, name: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        deadline = asyncio.get_running_loop().time() + CALL_TIMEOUT_S
        with self._metrics.admin_call(name):
            try:
                return await work(Connection(self._client, deadline))
            except RequestFailed as error:
                failures = error.failures if isinstance(error, NoMetadata) else [error]
                kind = ClusterUnreachableError if isinstance(error, NoMetadata) else ControllerUnavailableError
                raise classify_connection_error(failures) or kind(error.reason) from error
            except WireError as error:
                code = ErrorCode.INVALID_REQUEST
                raise CallRefusedError(Failure(code, code.name, f"The request cannot be encoded: {error}.")) from error


def _named(call: str, validate_only: bool) -> str:
    """Return the metrics' name of a call that may be a validation only."""
    return f"validate_{call}" if validate_only else call


def _raise_refusal(response: Body) -> None:
    failure = requests.failure_of(response["error_code"], response.get("error_message"))
    if failure is not None:
        raise CallRefusedError(failure)
