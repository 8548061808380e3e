"""What `helm test` runs: produce records to a new topic, consume the same ones, and delete the topic again.

    python3 produce_and_consume.py HOST:PORT

Acknowledged by all replicas in sync, and read back from the first offset on: a cluster that passes elects, replicates and serves.
"""

import asyncio
import sys
import time
import uuid
from collections.abc import Iterable

from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import ConnectionFailed, Node, NodeSettings, RequestFailed
from kafka_wire.net.cluster import ClusterClient, parse_bootstrap
from kafka_wire.net.connection import body_decoder
from kafka_wire.records import Record, decode_batches, encode_batch

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
PRODUCE_VERSIONS, FETCH_VERSIONS, DELETE_VERSIONS = (3, 12), (4, 12), (1, 5)
"""Those in which topics are named and not numbered."""


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
            sent = {partition: _values(partition) for partition in range(PARTITIONS)}
            for partition, values in sent.items():
                await self._produce(partition, values)
            received = {partition: await self._consume(partition, len(sent[partition])) for partition in sent}
        finally:
            await self._delete()
        if sent != received:
            raise StepFailed(f"{RECORDS} records were sent, and others came back")
        return sum(map(len, received.values()))

    async def create(self) -> None:
        """Create the topic as soon as the cluster can: right after an install, or in an upgrade, a broker may be on its way."""
        wanted = {"name": self._topic, "num_partitions": PARTITIONS, "replication_factor": -1}
        body = {"topics": [wanted], "timeout_ms": TOPIC_TIMEOUT_MS}
        created = {
            ErrorCode.NONE,
            ErrorCode.TOPIC_ALREADY_EXISTS,
        }  # the latter: an earlier try whose answer did not come
        deadline = _deadline()
        while error := await self._on_controller(ApiKey.CREATE_TOPICS, body, "topics", created, deadline):
            await _wait(f"the topic cannot be created: {error}", deadline)

    async def _delete(self) -> None:
        body = {"topic_names": [self._topic], "timeout_ms": TOPIC_TIMEOUT_MS}
        await self._on_controller(
            ApiKey.DELETE_TOPICS, body, "responses", {ErrorCode.NONE}, _deadline(), DELETE_VERSIONS
        )

    async def _on_controller(
        self,
        key: ApiKey,
        body: Body,
        results: str,
        accepted: set[ErrorCode],
        deadline: float,
        versions: tuple[int, int] | None = None,
    ) -> str | None:
        """Return the error of a request to the controller, or None."""

        def codes_of(response: Body) -> Iterable[int]:
            return [one["error_code"] for one in response[results]]

        try:
            found = await self._client.call_controller(
                key, body, body_decoder(key), codes_of, deadline=deadline, versions=versions
            )
        except RequestFailed as error:
            return error.reason
        return next((ErrorCode.of(code).name for code in codes_of(found) if code not in accepted), None)

    async def _produce(self, partition: int, values: list[bytes]) -> None:
        now_ms = int(time.time() * 1000)
        records = encode_batch([Record(at, now_ms, None, value) for at, value in enumerate(values)])
        data = [{"name": self._topic, "partition_data": [{"index": partition, "records": records}]}]
        body = {"transactional_id": None, "acks": ACKS_ALL, "timeout_ms": TOPIC_TIMEOUT_MS, "topic_data": data}
        deadline = _deadline()
        while True:
            try:
                leader = await self._leader(partition, deadline)
                # One attempt: after an unknown result the records would come back twice.
                found = await leader.request(
                    ApiKey.PRODUCE, body, body_decoder(ApiKey.PRODUCE), deadline=deadline, versions=PRODUCE_VERSIONS
                )
            except RequestFailed as failure:
                if isinstance(failure, ConnectionFailed) and failure.sent:
                    raise StepFailed(
                        f"the records of partition {partition} have no answer: {failure.reason}"
                    ) from failure
                error = failure.reason
            else:
                (result,) = [one for topic in found["responses"] for one in topic["partition_responses"]]
                if result["error_code"] == ErrorCode.NONE:
                    return
                error = ErrorCode.of(result["error_code"]).name
            await _wait(f"partition {partition} takes no records: {error}", deadline)

    async def _consume(self, partition: int, wanted: int) -> list[bytes]:
        received: list[bytes] = []
        error = "the response is empty"
        deadline = _deadline()
        while len(received) < wanted:
            place = {"partition": partition, "fetch_offset": len(received), "partition_max_bytes": FETCH_BYTES}
            body = {
                "max_wait_ms": 500,
                "min_bytes": 1,
                "max_bytes": FETCH_BYTES,
                "topics": [{"topic": self._topic, "partitions": [place]}],
            }
            try:
                leader = await self._leader(partition, deadline)
                found = await leader.request(
                    ApiKey.FETCH, body, body_decoder(ApiKey.FETCH), deadline=deadline, versions=FETCH_VERSIONS
                )
                (result,) = [one for topic in found["responses"] for one in topic["partitions"]]
                error = ErrorCode.of(result["error_code"]).name
                records = [one for batch in decode_batches(result["records"] or b"") for one in batch.records]
                received += [one.value or b"" for one in records if one.offset >= len(received)]
            except RequestFailed as failure:
                error = failure.reason
            if len(received) < wanted:
                await _wait(
                    f"{len(received)} of {wanted} records of partition {partition} have come: {error}", deadline
                )
        return received

    async def _leader(self, partition: int, deadline: float) -> Node:
        found = await self._client.metadata(deadline=deadline, topics=[self._topic])
        leaders = dict(zip(found.partition_index.tolist(), found.leader_id.tolist(), strict=True))
        node = self._client.broker(leaders.get(partition, -1))
        if node is None:
            raise RequestFailed(f"partition {partition} has no leader")
        return node


async def _wait(error: str, deadline: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise StepFailed(error)
    await asyncio.sleep(RETRY_S)


def _deadline() -> float:
    return asyncio.get_running_loop().time() + TIMEOUT_S


def _values(partition: int) -> list[bytes]:
    return [f"record {number}".encode() for number in range(partition, RECORDS, PARTITIONS)]


async def produce_and_consume(bootstrap: str, topic: str) -> int:
    """Return how many records came back. Raises StepFailed."""
    settings = NodeSettings(client_id="steward-test")
    client = ClusterClient(parse_bootstrap([bootstrap]), settings, metadata_timeout_ms=METADATA_TIMEOUT_MS)
    try:
        return await Check(client, topic).run()
    finally:
        await client.close()


def main(bootstrap: str) -> int:
    """Do it and return the exit code."""
    topic = f"steward-test-{uuid.uuid4().hex[:8]}"
    try:
        count = asyncio.run(produce_and_consume(bootstrap, topic))
    except StepFailed as error:
        sys.stderr.write(f"{topic} at {bootstrap}: {error}\n")
        return 1
    sys.stdout.write(f"{count} records were produced to {topic} and came back\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
