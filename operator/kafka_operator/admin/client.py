"""The Admin port on kafka-python: each call in a worker thread, on a connection that is renewed when it fails.

A call is tried twice: once on the present connection, which may be stale, and once on a new one. Every call may be repeated:
the engine's next read shows effects of an earlier call, or the response is "already exists".
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kafka.errors import KafkaError

from kafka_operator.admin import requests
from kafka_operator.admin.broker_roles import only_brokers
from kafka_operator.admin.brokers import change_broker_configs, query_broker_configs, query_logs
from kafka_operator.admin.cluster_metrics import query_cluster_metrics, query_versions
from kafka_operator.admin.connection import OPERATION_TIMEOUT_MS, Connection
from kafka_operator.admin.connection_errors import classify_connection_error
from kafka_operator.admin.group_lag import query_group_lags
from kafka_operator.admin.health import query_health, query_min_isr
from kafka_operator.admin.port import (
    AdminError,
    CallRefusedError,
    ClusterUnreachableError,
    ConnectionRejectedError,
    ControllerUnavailableError,
    Refusals,
)
from kafka_operator.admin.quorum import controller_of
from kafka_operator.admin.tls import make_context
from kafka_operator.decide.cluster_metrics import ClusterMetrics
from kafka_operator.decide.election import Elect
from kafka_operator.decide.kafka_errors import NO_REASSIGNMENT_IN_PROGRESS
from kafka_operator.decide.layout import BrokerSizes, Layout
from kafka_operator.decide.observed import ClusterSeen, ConfigValue, Failure, KafkaTopic, Moves
from kafka_operator.decide.reassignment_steps import AlterBroker
from kafka_operator.decide.replica_health import ReplicaHealth
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.metrics import Metrics
from kafka_operator.resources.cluster import Versions
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import PLAINTEXT, Security

ATTEMPTS = 2
"""One attempt on the present connection, one on a new one; further retries are up to the engine, which backs off."""

THREADS = 4
"""Concurrent calls of one cluster: a batch of Topics, one of Reassignments, a read of the cluster, and one spare."""

CALL_TIMEOUT_S = 60.0
"""Hard limit: longer than both attempts with all their own limits, so that a hung thread cannot block the engine."""

T = TypeVar("T")


class KafkaAdmin:
    """One cluster through kafka-python; opened at the first call."""

    def __init__(self, bootstrap_servers: Sequence[str], metrics: Metrics, security: Security = PLAINTEXT) -> None:
        """BadCredentialsError when a part of `security` cannot be used."""
        self._bootstrap_servers = tuple(bootstrap_servers)
        self._security = security
        self._context = make_context(security)
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="kafka-admin")
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._controllers_only: dict[int, bool] = {}
        self._failed_attempts = 0
        self._closed = False

    async def describe_cluster(self) -> ClusterSeen:
        """Return the cluster's id, controller and brokers; a dedicated controller is not counted as a broker."""

        def work(connection: Connection) -> ClusterSeen:
            response = connection.to_any(requests.metadata_request([]))
            broker_ids = only_brokers(connection, response, self._controllers_only)
            return ClusterSeen(response.cluster_id or "", controller_of(connection, response), broker_ids)

        return await self._call("describe_cluster", work)

    async def describe_topics(self, names: Sequence[str]) -> Mapping[str, KafkaTopic | Failure]:
        """Return the topics that exist, without their settings, as the controller sees them."""
        if not names:
            return {}
        response = await self._call("describe_topics", lambda connection: requests.metadata_of(connection, names))
        return requests.topics_of(response)

    async def describe_configs(
        self, wanted: Mapping[str, frozenset[str]]
    ) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        """Return those of the wanted settings that are set on the topics themselves."""
        if not wanted:
            return {}
        request = requests.describe_configs_request(wanted)
        return requests.configs_of(
            await self._controller_call("describe_configs", request, lambda r: _codes(r.results))
        )

    async def describe_all_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        """Return all settings that are set on the topics themselves."""
        request = requests.describe_all_configs_request(names)
        return requests.configs_of(
            await self._controller_call("describe_configs", request, lambda r: _codes(r.results))
        )

    async def create_topics(self, topics: Sequence[CreateTopic], *, validate_only: bool = False) -> Refusals:
        """Create topics, or only validate the request."""
        request = requests.create_topics_request(topics, OPERATION_TIMEOUT_MS, validate_only=validate_only)
        response = await self._controller_call(
            _named("create_topics", validate_only), request, lambda r: _codes(r.topics)
        )
        return requests.refused_topics(response.topics)

    async def grow_topics(self, topics: Sequence[GrowTopic], *, validate_only: bool = False) -> Refusals:
        """Add partitions, or only validate the request."""
        request = requests.create_partitions_request(topics, OPERATION_TIMEOUT_MS, validate_only=validate_only)
        response = await self._controller_call(
            _named("create_partitions", validate_only), request, lambda r: _codes(r.results)
        )
        return requests.refused_topics(response.results)

    async def alter_configs(self, topics: Sequence[AlterConfig], *, validate_only: bool = False) -> Refusals:
        """Set and reset settings of topics, or only validate the request."""
        request = requests.alter_configs_request(topics, validate_only=validate_only)
        response = await self._controller_call(
            _named("alter_configs", validate_only), request, lambda r: _codes(r.responses)
        )
        return requests.refused_topics(response.responses, "resource_name")

    async def delete_topics(self, names: Sequence[str]) -> Refusals:
        """Delete topics and their data."""
        request = requests.delete_topics_request(names, OPERATION_TIMEOUT_MS)
        response = await self._controller_call("delete_topics", request, lambda r: _codes(r.responses))
        return requests.refused_topics(response.responses)

    async def list_reassignments(self) -> Moves:
        """Return all partitions that are being reassigned."""
        request = requests.list_reassignments_request(OPERATION_TIMEOUT_MS)
        response = await self._controller_call("list_reassignments", request, lambda r: (r.error_code,))
        _raise_refusal(response.error_code, response.error_message)
        return requests.moves_of(response)

    async def alter_reassignments(
        self, targets: Mapping[Partition, tuple[int, ...] | None]
    ) -> Mapping[Partition, Failure]:
        """Start and cancel moves; a move that has ended counts as cancelled."""
        request = requests.alter_reassignments_request(targets, OPERATION_TIMEOUT_MS)
        response = await self._controller_call("alter_reassignments", request, lambda r: (r.error_code,))
        _raise_refusal(response.error_code, response.error_message)
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

        def work(connection: Connection) -> Layout:
            response = requests.metadata_of(connection, names)
            brokers = only_brokers(connection, response, self._controllers_only)
            return requests.layout_of(response, brokers)

        return await self._call("describe_layout", work)

    async def describe_log_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerSizes:
        """Return the bytes of logs, queried from each broker."""
        return await self._call("describe_log_dirs", lambda connection: query_logs(connection, broker_ids, partitions))

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
        response = await self._controller_call("elect_leaders", request, requests.election_codes)
        _raise_refusal(getattr(response, "error_code", 0), None)
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
        """Close the connection; calls in progress fail."""
        self._closed = True
        await asyncio.to_thread(self._drop_any)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _controller_call(self, name: str, request: Any, codes_of: Callable[[Any], Iterable[int]]) -> Any:
        return await self._call(name, lambda connection: connection.to_controller(request, codes_of))

    async def _call(self, name: str, work: Callable[[Connection], T]) -> T:
        if self._closed:
            raise ClusterUnreachableError("the connection was closed")
        loop = asyncio.get_running_loop()
        with self._metrics.admin_call(name):
            try:
                return await asyncio.wait_for(loop.run_in_executor(self._threads, self._attempts, work), CALL_TIMEOUT_S)
            except TimeoutError:
                await asyncio.to_thread(self._drop_any)
                raise ControllerUnavailableError(f"{name} gave no response in {CALL_TIMEOUT_S:.0f} s") from None

    def _attempts(self, work: Callable[[Connection], T]) -> T:
        problem: Exception | None = None
        for _ in range(ATTEMPTS):
            connection = self._connected()
            try:
                return work(connection)
            except ControllerUnavailableError as error:
                problem = error
            except AdminError:
                raise
            except (KafkaError, OSError, RuntimeError) as error:
                self._drop(connection)
                refusal = classify_connection_error([error])
                if refusal is not None:
                    raise refusal from None
                problem = error
        raise ControllerUnavailableError(f"{type(problem).__name__}: {problem}") from problem

    def _connected(self) -> Connection:
        attempts_before = self._failed_attempts
        with self._lock:
            if self._closed:
                raise ClusterUnreachableError("the connection was closed")
            if self._connection is None:
                if self._failed_attempts != attempts_before:  # while this thread waited for the lock
                    raise ClusterUnreachableError("another request has just failed to connect")
                try:
                    self._connection = Connection(self._bootstrap_servers, self._security, self._context)
                except ConnectionRejectedError:
                    self._failed_attempts += 1
                    raise
                except (KafkaError, OSError) as error:
                    self._failed_attempts += 1
                    raise ClusterUnreachableError(f"{type(error).__name__}: {error}") from error
            return self._connection

    def _drop_any(self) -> None:
        """Close the present connection, and the one that is being opened."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _drop(self, connection: Connection | None) -> None:
        """Close a connection that failed, unless another thread has done so."""
        with self._lock:
            if connection is None or connection is not self._connection:
                return
            self._connection = None
        connection.close()


def _named(call: str, validate_only: bool) -> str:
    """Return the metrics' name of a call that may be a validation only."""
    return f"validate_{call}" if validate_only else call


def _codes(results: Iterable[Any]) -> Iterable[int]:
    return [result.error_code for result in results]


def _raise_refusal(code: int, message: str | None) -> None:
    failure = requests.failure_of(code, message)
    if failure is not None:
        raise CallRefusedError(failure)
