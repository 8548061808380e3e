"""Test that `helm test` runs: produce records to a new topic, consume the same ones, and delete the topic again.

    python3 produce_and_consume.py HOST:PORT

Acknowledged by all replicas in sync, and read back from the first offset on: a cluster that passes elects, replicates and serves.
"""

import asyncio
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from kafka_node.security.brokers import UNPROTECTED, broker_security
from kafka_node.security.settings import SecuritySettings, TlsFiles
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import ConnectionFailed, Node, NodeSettings, RequestFailed
from kafka_wire.net.cluster import ClusterClient, parse_bootstrap
from kafka_wire.net.connection import body_decoder
from kafka_wire.net.negotiation import VersionRange
from kafka_wire.records import Record, decode_batches, encode_batch

CREDENTIALS = Path("/etc/kafka/client")
"""Where the chart mounts ca.crt and password for secured brokers."""

RECORDS = 102
PARTITIONS = 3

TIMEOUT_S = 60.0
"""For each step: a cluster that has just been installed may be electing its first leaders."""

METADATA_TIMEOUT_MS = 10_000
"""How long the first answer may take."""

RETRY_S = 1.0
TOPIC_TIMEOUT_MS = 30_000
ACKS_ALL = -1
FETCH_BYTES = 1_048_576
FETCH_WAIT_MS = 500
CREATE_VERSIONS, DELETE_VERSIONS, PRODUCE_VERSIONS, FETCH_VERSIONS = (4, 7), (1, 5), (3, 12), (4, 12)
"""Those in which topics are named and not numbered, and CreateTopics knows the brokers' default of the replication factor."""


class StepFailed(Exception):  # noqa: N818 -- named like the failures of kafka_wire
    """A step had no success within its time; the message has the last error."""


class Check:
    """One topic of one cluster."""

    def __init__(self, client: ClusterClient, topic: str) -> None:
        self._client = client
        self._topic = topic

    async def run(self) -> int:
        """Return how many records came back. Raises StepFailed."""
        await self.create()
        try:
            sent = [
                [f"record {at}".encode() for at in range(first, RECORDS, PARTITIONS)] for first in range(PARTITIONS)
            ]
            for partition, values in enumerate(sent):
                await _retry(f"partition {partition} takes no records", self._produce, partition, values)
            received: list[list[bytes]] = [[] for _ in sent]
            for partition, values in enumerate(sent):
                what = f"partition {partition} does not return all records"
                await _retry(what, self._fetch, partition, received[partition], len(values))
        finally:
            await _retry("the topic cannot be deleted", self._delete)
        if sent != received:
            raise StepFailed(f"{RECORDS} records were sent, and others came back")
        return sum(map(len, received))

    async def create(self) -> None:
        """Create the topic as soon as the cluster can: right after an install, or in an upgrade, a broker may be on its way."""
        await _retry("the topic cannot be created", self._create)

    async def _create(self, deadline: float) -> None:
        wanted = {"name": self._topic, "num_partitions": PARTITIONS, "replication_factor": -1}
        body = {"topics": [wanted], "timeout_ms": TOPIC_TIMEOUT_MS}
        await self._on_controller(ApiKey.CREATE_TOPICS, body, "topics", CREATE_VERSIONS, deadline)

    async def _delete(self, deadline: float) -> None:
        body = {"topic_names": [self._topic], "timeout_ms": TOPIC_TIMEOUT_MS}
        await self._on_controller(ApiKey.DELETE_TOPICS, body, "responses", DELETE_VERSIONS, deadline)

    async def _on_controller(
        self, key: ApiKey, body: Body, results: str, versions: VersionRange, deadline: float
    ) -> None:
        """Send a request to the controller; an earlier attempt whose answer did not come may have succeeded."""

        def codes_of(response: Body) -> list[int]:
            return [result["error_code"] for result in response[results]]

        decode = body_decoder(key)
        found = await self._client.call_controller(key, body, decode, codes_of, deadline=deadline, versions=versions)
        for code in codes_of(found):
            if code not in {ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
                _check(code)

    async def _produce(self, deadline: float, partition: int, values: list[bytes]) -> None:
        now_ms = int(time.time() * 1000)
        records = encode_batch([Record(at, now_ms, None, value) for at, value in enumerate(values)])
        data = [{"name": self._topic, "partition_data": [{"index": partition, "records": records}]}]
        body = {"transactional_id": None, "acks": ACKS_ALL, "timeout_ms": TOPIC_TIMEOUT_MS, "topic_data": data}
        leader, decode = await self._leader(partition, deadline), body_decoder(ApiKey.PRODUCE)
        try:  # once: after an unknown result the records would come back twice
            found = await leader.request(ApiKey.PRODUCE, body, decode, deadline=deadline, versions=PRODUCE_VERSIONS)
        except ConnectionFailed as failure:
            if failure.sent:
                raise StepFailed(f"the records of partition {partition} have no answer: {failure}") from failure
            raise
        _check(found["responses"][0]["partition_responses"][0]["error_code"])

    async def _fetch(self, deadline: float, partition: int, received: list[bytes], wanted: int) -> None:
        """Append what follows the received records, until all have come."""
        decode = body_decoder(ApiKey.FETCH)
        while len(received) < wanted:
            place = {"partition": partition, "fetch_offset": len(received), "partition_max_bytes": FETCH_BYTES}
            topics = [{"topic": self._topic, "partitions": [place]}]
            body = {"max_wait_ms": FETCH_WAIT_MS, "min_bytes": 1, "max_bytes": FETCH_BYTES, "topics": topics}
            leader = await self._leader(partition, deadline)
            found = await leader.request(ApiKey.FETCH, body, decode, deadline=deadline, versions=FETCH_VERSIONS)
            result = found["responses"][0]["partitions"][0]
            _check(result["error_code"])
            records = [record for batch in decode_batches(result["records"] or b"") for record in batch.records]
            received += [record.value or b"" for record in records if record.offset >= len(received)]

    async def _leader(self, partition: int, deadline: float) -> Node:
        found = await self._client.metadata(deadline=deadline, topics=[self._topic])
        leaders = dict(zip(found.partition_index.tolist(), found.leader_id.tolist(), strict=True))
        node = self._client.broker(leaders.get(partition, -1))
        if node is None:
            raise RequestFailed(f"partition {partition} has no leader")
        return node


async def _retry(what: str, step: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Repeat a step until it succeeds. Raises StepFailed at the end of its time."""
    deadline = asyncio.get_running_loop().time() + TIMEOUT_S
    while True:
        try:
            await step(deadline, *arguments)
        except RequestFailed as failure:
            if asyncio.get_running_loop().time() > deadline:
                raise StepFailed(f"{what}: {failure}") from failure
            await asyncio.sleep(RETRY_S)
        else:
            return


def _check(error_code: int) -> None:
    if error_code != ErrorCode.NONE:
        raise RequestFailed(ErrorCode.of(error_code).name)


def node_settings(protocol: str, mechanism: str | None = None, username: str | None = None) -> NodeSettings:
    """Return TLS and SASL for a security protocol, with the files of the chart. Raises ValueError."""
    security = UNPROTECTED
    if protocol != "PLAINTEXT":
        password = CREDENTIALS / "password" if mechanism else None
        security = broker_security(
            SecuritySettings(
                broker_tls=TlsFiles(ca=CREDENTIALS / "ca.crt"),
                broker_sasl_mechanism=mechanism,
                broker_sasl_username=username,
                broker_sasl_password_file=password,
            )
        )
    return security.settings(NodeSettings(client_id="steward-test"), protocol)


async def produce_and_consume(bootstrap: str, topic: str, settings: NodeSettings) -> int:
    """Return how many records came back. Raises StepFailed."""
    client = ClusterClient(parse_bootstrap([bootstrap]), settings, metadata_timeout_ms=METADATA_TIMEOUT_MS)
    try:
        return await Check(client, topic).run()
    finally:
        await client.close()


def main(bootstrap: str, protocol: str = "PLAINTEXT", mechanism: str | None = None, username: str | None = None) -> int:
    """Do it and return the exit code."""
    topic = f"steward-test-{uuid.uuid4().hex[:8]}"
    try:
        count = asyncio.run(produce_and_consume(bootstrap, topic, node_settings(protocol, mechanism, username)))
    except (StepFailed, ValueError) as error:
        sys.stderr.write(f"{topic} at {bootstrap}: {error}\n")
        return 1
    sys.stdout.write(f"{count} records were produced to {topic} and came back\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
