"""Observers that fetch a quorum's log from its leader, for `observers`: each has a connection, as a broker has.

    python -m bench.quorum.observer_load PORT COUNT

An observer learns the epoch from the first response, waits at the leader for the next committed records, and fetches again from behind
them. It keeps nothing. All end with an error when the leader ends, or another one is elected: the benchmark's figure would be invalid.
"""

import argparse
import asyncio
import sys
import uuid

from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import Node
from kafka_wire.records import batch_headers
from lab.peers.quorum import HOST, RAFT_SERVER_CLUSTER, RAFT_SERVER_TOPIC_ID

FIRST_ID = 1_000
"""Of the observers: not a voter's."""

MAX_WAIT_MS = 500
MAX_BYTES = 8 * 1024 * 1024
"""As Kafka's own observers ask."""

FETCH_VERSION = 17
"""The newest without the observer's high watermark, which only voters need."""

READY = "every observer has fetched"


async def observe(port: int, observer_id: int, fetched: asyncio.Event) -> None:
    """Fetch until cancelled. Raises RuntimeError when the leader refuses."""
    node = Node(HOST, port)
    body, partition = request(observer_id)
    try:
        while True:
            answer = await node.call(ApiKey.FETCH, body, version=FETCH_VERSION)
            response = answer["responses"][0]["partitions"][0]
            if {answer["error_code"], response["error_code"]} - {ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH}:
                raise RuntimeError(f"Observer {observer_id} was refused: {answer}")
            follow(partition, response)
            fetched.set()
    finally:
        await node.close()


def request(observer_id: int) -> tuple[Body, Body]:
    """Return the body of a Fetch, and the part of it that changes."""
    partition: Body = {
        "partition": 0,
        "current_leader_epoch": 0,
        "fetch_offset": 0,
        "last_fetched_epoch": 0,
        "replica_directory_id": uuid.UUID(int=observer_id),
    }
    return {
        "cluster_id": RAFT_SERVER_CLUSTER,
        "replica_state": {"replica_id": observer_id},
        "max_wait_ms": MAX_WAIT_MS,
        "max_bytes": MAX_BYTES,
        "topics": [{"topic_id": RAFT_SERVER_TOPIC_ID, "partitions": [partition]}],
    }, partition


def follow(partition: Body, response: Body) -> None:
    """Put the position behind the fetched records into the next request."""
    partition["current_leader_epoch"] = response["current_leader"]["leader_epoch"]
    if records := response["records"]:
        *_, (_, header) = batch_headers(records)
        partition["fetch_offset"] = header.last_offset + 1
        partition["last_fetched_epoch"] = header.partition_leader_epoch


async def main(arguments: list[str]) -> None:
    """Run the observers until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("count", type=int)
    parsed = parser.parse_args(arguments)
    fetched = [asyncio.Event() for _ in range(parsed.count)]
    async with asyncio.TaskGroup() as group:
        for index, event in enumerate(fetched):
            group.create_task(observe(parsed.port, FIRST_ID + index, event))
        for event in fetched:
            await event.wait()
        print(READY, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
