"""A Reassignment as its user sees it: a plan over all partitions in ConfigMaps, created or approved, until moves run in Kafka.

A separate client lists the running moves at the controller.
"""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.resources.many_topics import CHANGES, writes
from bench.resources.operator_stage import StewardStage
from bench.zookeeper_mode.layout import QUIET
from kafka_operator.decide.plans.plan_document import Document, write_document
from kafka_operator.decide.plans.plan_packing import packed_document
from kafka_operator.resources.reassignment import Assignment, Partition
from kafka_wire import ApiKey
from kafka_wire.net.connection import Connection
from lab.peers.kafka import CLIENT
from lab.peers.steward import StewardOperator
from lab.processes.waiting import wait_until

REASSIGNMENT, PREFIX = "large", "bench-"
TOPICS_OF_CALL = 20
"""Some thousands of logs, which brokers make within seconds."""

PATIENCE_S = 600.0
CREATION_PATIENCE_S = 1800.0
"""A log costs a broker some milliseconds of a processor, so a hundred thousand take two processors minutes."""
POLL_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.01
"""Between polls of the moves: a move takes far longer, and a poll costs the controller next to nothing."""


@dataclass
class Move:
    """One Reassignment in a namespace of its own, and the operator that serves it."""

    at: StewardStage
    namespace: str
    operator: StewardOperator
    plan_from: Mapping[str, Any]

    def writes(self) -> tuple[float, float]:
        """Return the changes of Reassignments and the ConfigMaps made, as the API server has counted them."""
        return writes(self.at.api, "reassignments", CHANGES), writes(self.at.api, "configmaps", {"POST"})

    def create(self, **spec: Any) -> None:
        """Create it."""
        body = {
            "apiVersion": "steward.dev/v1alpha1",
            "kind": "Reassignment",
            "metadata": {"name": REASSIGNMENT},
            "spec": {"clusterRef": {"name": "main"}, "planFrom": self.plan_from, **spec},
        }
        self._kubectl("create", "-f", "-", stdin=json.dumps(body))

    def change(self, spec: Mapping[str, Any]) -> None:
        """Change its spec."""
        self._kubectl("patch", "reassignment", REASSIGNMENT, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def wait_for_first_move(self) -> float:
        """Return when (time.perf_counter) the controller first listed a move."""
        return asyncio.run(_first_move(self.at.controller.ports[CLIENT]))

    def wait_until(self, state: str) -> dict[str, Any]:
        """Wait for a state and return the status."""
        path = f"/apis/steward.dev/v1alpha1/namespaces/{self.namespace}/reassignments/{REASSIGNMENT}"

        def status() -> dict[str, Any]:
            found = json.loads(self.at.api.get(path) or b"{}").get("status", {})
            assert found.get("state") != "Failed", found
            return dict(found)

        wait_until(lambda: status().get("state") == state, timeout_s=PATIENCE_S, what=f"the Reassignment is {state}")
        return status()

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> None:
        self.at.api.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin, check=True)


class PlannedMoves:
    """Topics whose partitions have one replica each, and plans that move every replica to the next broker."""

    def __init__(self, at: StewardStage, topics: int, partitions: int) -> None:
        self._at = at
        self._broker_ids = tuple(at.kafka.brokers)
        self._names = [f"{PREFIX}{number:04}" for number in range(topics)]
        self._partitions = partitions
        self._admin = _client(at)

    def create_topics(self) -> None:
        """Create all of them and wait until each partition has its log."""
        wait_until(self._controller_known, timeout_s=PATIENCE_S, what="the controller known to brokers")
        for first in range(0, len(self._names), TOPICS_OF_CALL):
            new = [
                NewTopic(name, self._partitions, replica_assignment=self._lists(number))
                for number, name in enumerate(self._names[first : first + TOPICS_OF_CALL], first)
            ]
            futures = self._admin.create_topics(
                new, operation_timeout=CREATION_PATIENCE_S, request_timeout=CREATION_PATIENCE_S
            )
            for future in futures.values():
                future.result(CREATION_PATIENCE_S)
        wait_until(self._made, timeout_s=CREATION_PATIENCE_S, what="every log made", interval_s=1.0)

    def plan(self) -> list[Assignment]:
        """Return where every partition goes from where it is now."""
        after = dict(zip(self._broker_ids, (*self._broker_ids[1:], self._broker_ids[0]), strict=True))
        topics = self._admin.list_topics(timeout=POLL_TIMEOUT_S).topics
        return [
            Assignment(Partition(name, index), (after[topics[name].partitions[index].replicas[0]],))
            for name in self._names
            for index in range(self._partitions)
        ]

    def document(self) -> bytes:
        """Return such a plan as Kafka's tool reads it."""
        return write_document(self.plan(), None)

    @contextlib.contextmanager
    def prepared(self, side: str) -> Iterator[Move]:
        """Yield a plan in ConfigMaps and a running operator; running moves are cancelled at the end."""
        at, document = self._at, Document(tuple(self.plan()))
        namespace = at.namespace(side)
        with at.operator(namespace) as operator:
            at.connect(namespace)
            names = []
            for number, data in enumerate(packed_document(document)):
                names.append(f"plan-{number}")
                config_map = {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": names[-1]},
                    "binaryData": data,
                }
                create = (f"--namespace={namespace}", "create", "-f", "-")
                at.api.kubectl(*create, stdin=json.dumps(config_map), check=True)
            move = Move(at, namespace, operator, {"configMaps": names, "digest": document.digest})
            yield move
            move.change({"action": "Cancel"})
            move.wait_until("Cancelled")

    def _lists(self, number: int) -> list[list[int]]:
        ids = self._broker_ids
        return [[ids[(number + partition) % len(ids)]] for partition in range(self._partitions)]

    def _controller_known(self) -> bool:
        # A client whose metadata has no controller waits for one for minutes, so each poll has a new client.
        self._admin = _client(self._at)
        known = self._admin.list_topics(timeout=POLL_TIMEOUT_S).controller_id
        return bool(known == self._at.controller.controller_id)

    def _made(self) -> bool:
        # Metadata lists the leader as soon as the broker has the request; the broker creates the log afterwards.
        folders = [broker.data_folder for broker in self._at.kafka.brokers.values()]
        made = sum(entry.name.startswith(PREFIX) for folder in folders for entry in os.scandir(folder))
        return made == len(self._names) * self._partitions


def _client(at: StewardStage) -> AdminClient:
    return AdminClient({"bootstrap.servers": at.kafka.bootstrap()}, logger=QUIET)


async def _first_move(port: int) -> float:
    body = {"timeout_ms": int(POLL_TIMEOUT_S * 1000), "topics": None}
    connection = await Connection.open("127.0.0.1", port, client_id=None)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                listed = await connection.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, body)
                assert not listed["error_code"], listed
                if listed["topics"]:
                    return time.perf_counter()
                await asyncio.sleep(POLL_INTERVAL_S)
    finally:
        await connection.close()
