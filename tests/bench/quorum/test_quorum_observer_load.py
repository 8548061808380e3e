"""The Fetch requests of the observers that load a quorum's leader."""

from bench.quorum.observer_load import follow, request
from tests.kafka_log.batches import batch


def test_an_observer_fetches_again_from_behind_what_it_has_fetched() -> None:
    """KafkaRaftClient.buildFetchRequest. A response without records, as the first one with the epoch, changes no position."""
    body, partition = request(1_000)
    follow(partition, {"current_leader": {"leader_epoch": 3}, "records": b""})
    assert (partition["current_leader_epoch"], partition["fetch_offset"], partition["last_fetched_epoch"]) == (3, 0, 0)

    records = batch(0, records=2, epoch=2) + batch(2, epoch=3)
    follow(body["topics"][0]["partitions"][0], {"current_leader": {"leader_epoch": 3}, "records": records})
    assert (partition["current_leader_epoch"], partition["fetch_offset"], partition["last_fetched_epoch"]) == (3, 3, 3)
