"""Topics from apply to Ready and back, over fakes and virtual time."""

from __future__ import annotations

from kafka_operator.kube.port import ConflictError, UnavailableError
from kafka_operator.names import FINALIZER, Key, Kind
from kafka_operator.resources.reassignment import Partition
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.gate import Gate
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.world import RESYNC_S, World, in_virtual_time, running

ORDERS = Key(Kind.TOPIC, "shop", "orders")


def key(name: str) -> Key:
    """A Topic's key."""
    return Key(Kind.TOPIC, "shop", name)


async def settled_topic(world: World, **spec: object) -> None:
    """Have Topic `orders` Ready."""
    world.kube.apply(raw_topic(**spec))
    await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")
    world.kube.writes.clear()
    world.gate.calls.clear()


@in_virtual_time
async def test_a_topic_is_ready_within_two_seconds_with_two_writes() -> None:
    """Issue: Ready within 2 s; at most 3 writes besides the create, 2 are enough (finalizer, status)."""
    async with running() as world:
        await world.run(1)
        world.kube.writes.clear()
        world.kube.apply(raw_topic(config={"retention.ms": "1000"}))

        took_s = await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        assert took_s < 2
        await world.run(60)
        assert [str(ORDERS)] * 2 == world.kube.writes
        assert 6 == len(world.kafka.topics["orders"].replicas)
        assert {"retention.ms": "1000"} == world.kafka.topics["orders"].config
        assert [FINALIZER] == world.kube.objects[ORDERS]["metadata"]["finalizers"]
        status = world.kube.objects[ORDERS]["status"]
        assert (6, 3, "orders", 1) == (
            status["partitions"],
            status["replicationFactor"],
            status["topicName"],
            status["observedGeneration"],
        )


@in_virtual_time
async def test_many_topics_are_one_admin_call() -> None:
    """Batched: one CreateTopics for what comes together."""
    async with running() as world:
        await world.run(1)
        for index in range(100):
            world.kube.apply(raw_topic(f"t{index}"))
        await world.until(lambda: all(world.kube.ready(key(f"t{index}"))[0] == "True" for index in range(100)))

        assert world.gate.count("kafka create_topics") <= 3
        assert 100 == len(world.kafka.topics)


@in_virtual_time
async def test_one_bad_topic_does_not_spoil_the_batch() -> None:
    """Errors are for each topic; the broker's own words reach its Ready."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2, 3)
        world.kube.apply(raw_topic("good"))
        world.kube.apply(raw_topic("bad-key", config={"no.such": "1"}))
        world.kube.apply(raw_topic("too-many", replicationFactor=4))
        await world.run(5)

        assert "True" == world.kube.ready(key("good"))[0]
        assert ("False", "InvalidConfig", "Unknown topic config name: no.such") == world.kube.ready(key("bad-key"))
        assert (
            "False",
            "NotEnoughBrokers",
            "Replication factor: 4 larger than available brokers: 3.",
        ) == world.kube.ready(key("too-many"))


@in_virtual_time
async def test_a_topic_that_fails_is_no_hot_loop() -> None:
    """O7: one status write for the failure, tries with growing distance, one event."""
    async with running() as world:
        world.kube.apply(raw_topic(config={"no.such": "1"}))
        await world.run(5)
        world.kube.writes.clear()
        world.gate.calls.clear()

        await world.run(600)

        assert str(ORDERS) not in world.kube.writes
        assert world.gate.count("kafka create_topics") <= 20
        assert ["InvalidConfig"] == [notice.reason for notice in world.kube.events]


@in_virtual_time
async def test_a_new_broker_wakes_those_that_waited_for_it() -> None:
    """NotEnoughBrokers ends soon after the broker came, not at the next resync."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "NotEnoughBrokers")
        await world.run(300)

        world.kafka.broker_ids = (1, 2, 3)

        assert await world.until(lambda: world.kube.ready(ORDERS)[0] == "True") < 15


@in_virtual_time
async def test_partitions_grow_and_settings_change() -> None:
    """A changed spec: two writes at most (names of settings, status)."""
    async with running() as world:
        await settled_topic(world, config={"retention.ms": "1", "min.insync.replicas": "2"})

        world.kube.apply(raw_topic(partitions=8, config={"retention.ms": "2", "cleanup.policy": "compact"}))
        await world.run(3)

        assert 8 == len(world.kafka.topics["orders"].replicas)
        assert {"retention.ms": "2", "cleanup.policy": "compact"} == world.kafka.topics["orders"].config
        assert ("True", 2) == (
            world.kube.ready(ORDERS)[0],
            world.kube.objects[ORDERS]["status"]["observedGeneration"],
        )
        assert (
            "cleanup.policy,retention.ms"
            == world.kube.objects[ORDERS]["metadata"]["annotations"]["steward.dev/managed-config"]
        )
        assert len(world.kube.writes) <= 3


@in_virtual_time
async def test_nothing_is_written_and_nothing_changed_in_kafka_while_nothing_changes() -> None:
    """O1: resyncs look, and that is all."""
    async with running() as world:
        await settled_topic(world, config={"retention.ms": "1"})

        await world.run(3 * RESYNC_S)

        assert [] == world.kube.writes
        changes = ("kafka create", "kafka grow", "kafka alter", "kafka delete")
        assert 0 == sum(world.gate.count(name) for name in changes)
        assert world.gate.count("kafka describe_topics") >= 3


@in_virtual_time
async def test_drift_is_reverted_at_the_resync() -> None:
    """Changed or deleted behind our back; foreign settings stay."""
    async with running() as world:
        await settled_topic(world, config={"retention.ms": "1"})
        world.kafka.topics["orders"].config = {"retention.ms": "9", "min.insync.replicas": "2"}

        await world.run(RESYNC_S + 5)

        assert {"retention.ms": "1", "min.insync.replicas": "2"} == world.kafka.topics["orders"].config
        del world.kafka.topics["orders"]
        await world.run(RESYNC_S + 5)
        assert 6 == len(world.kafka.topics["orders"].replicas)


@in_virtual_time
async def test_an_existing_topic_is_adopted() -> None:
    """Also what our own call created whose answer was lost."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)] * 6)
        world.kafka.lose_answers = 1
        world.kube.apply(raw_topic())
        world.kube.apply(raw_topic("lost"))

        await world.until(
            lambda: all(world.kube.ready(name)[0] == "True" for name in (ORDERS, key("lost"))), seconds=10
        )


@in_virtual_time
async def test_metadata_that_lags_causes_no_second_write() -> None:
    """A created topic may take some time to be visible."""
    async with running() as world:
        world.kafka.visible_after_s = 1.0
        world.kube.apply(raw_topic())

        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True", seconds=4)
        await world.run(10)

        assert 2 == world.kube.writes.count(str(ORDERS))


@in_virtual_time
async def test_a_deleted_topic_goes_from_kafka_and_then_from_kubernetes() -> None:
    """The finalizer is removed after the topic is gone."""
    async with running() as world:
        await settled_topic(world)

        world.kube.delete(ORDERS)
        await world.until(lambda: ORDERS not in world.kube.objects, seconds=3)

        assert {} == world.kafka.topics
        assert [] == world.kube.events


@in_virtual_time
async def test_retain_leaves_the_kafka_topic() -> None:
    """DeletionPolicy Retain."""
    async with running() as world:
        await settled_topic(world, deletionPolicy="Retain")

        world.kube.delete(ORDERS)
        await world.until(lambda: ORDERS not in world.kube.objects, seconds=3)

        assert "orders" in world.kafka.topics
        assert ["TopicRetained"] == [notice.reason for notice in world.kube.events]


@in_virtual_time
async def test_a_namespace_is_not_wedged_by_a_dead_cluster() -> None:
    """Issue: within 60 s; Kafka went with the namespace, so its Topics go soon, and events say what is kept."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.reachable = False
        cluster_key = Key(Kind.CLUSTER, "shop", "main")

        world.kube.delete(cluster_key)
        world.kube.delete(ORDERS)
        took_s = await world.until(lambda: not world.kube.objects, seconds=90)

        assert 10 < took_s < 25
        assert "TopicKept" in [notice.reason for notice in world.kube.events]
        assert "orders" in world.kafka.topics


@in_virtual_time
async def test_a_dead_cluster_whose_resource_stays_is_waited_for_longer() -> None:
    """Only the Topic goes: its Kafka topic may yet be deleted, when the brokers are back in half a minute."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.reachable = False
        world.kube.delete(ORDERS)
        await world.run(20)
        assert ORDERS in world.kube.objects

        world.kafka.reachable = True
        await world.until(lambda: ORDERS not in world.kube.objects, seconds=10)

        assert {} == world.kafka.topics


@in_virtual_time
async def test_a_topic_whose_cluster_is_gone_is_let_go_and_taken_up_again() -> None:
    """An operator that is uninstalled after its Cluster leaves nothing that only it could delete."""
    async with running() as world:
        await settled_topic(world)
        world.kube.delete(Key(Kind.CLUSTER, "shop", "main"))

        await world.until(lambda: not world.kube.objects[ORDERS]["metadata"].get("finalizers"), seconds=30)

        assert {"orders"} == world.kafka.topics.keys()
        assert "ClusterNotFound" == world.kube.ready(ORDERS)[1]
        world.kube.apply(raw_cluster())
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True", seconds=10)
        assert [FINALIZER] == world.kube.objects[ORDERS]["metadata"]["finalizers"]


@in_virtual_time
async def test_a_deleted_namespace_takes_its_kafka_topics_with_it() -> None:
    """The Cluster outlives the Topics that are deleted with it, though it was deleted first."""
    async with running() as world:
        for index in range(20):
            world.kube.apply(raw_topic(f"t{index}"))
        await world.until(lambda: all(world.kube.ready(key(f"t{index}"))[0] == "True" for index in range(20)))

        world.kube.delete(Key(Kind.CLUSTER, "shop", "main"))
        await world.run(1)
        for index in range(20):
            world.kube.delete(key(f"t{index}"))
        await world.until(lambda: not world.kube.objects, seconds=20)

        assert {} == world.kafka.topics
        assert [] == world.kube.events


@in_virtual_time
async def test_the_oldest_of_two_topics_wins_and_the_next_takes_over() -> None:
    """O5: the other says Conflict and names the winner; on the winner's deletion it creates the topic anew."""
    async with running() as world:
        await settled_topic(world)
        await world.run(2)
        world.kube.apply(raw_topic("second", topicName="orders", partitions=2))
        await world.run(2)

        status, reason, message = world.kube.ready(key("second"))
        assert ("False", "Conflict") == (status, reason)
        assert "shop/orders" in message
        assert 6 == len(world.kafka.topics["orders"].replicas)
        world.kube.delete(ORDERS)
        await world.until(lambda: world.kube.ready(key("second"))[0] == "True", seconds=10)
        assert 2 == len(world.kafka.topics["orders"].replicas)


@in_virtual_time
async def test_the_loser_of_a_conflict_goes_without_the_kafka_topic() -> None:
    """O4, O5."""
    async with running() as world:
        await settled_topic(world)
        await world.run(2)
        world.kube.apply(raw_topic("second", topicName="orders"))
        await world.run(2)

        world.kube.delete(key("second"))
        await world.run(5)

        assert "orders" in world.kafka.topics
        assert key("second") not in world.kube.objects


@in_virtual_time
async def test_two_clusters_that_are_one_kafka_cluster_conflict_too() -> None:
    """What tells clusters apart is Kafka's own id, not a Cluster's name."""
    async with running() as world:
        await settled_topic(world)
        await world.run(2)
        world.kube.apply(raw_cluster("alias", "other-name:9092"))
        await world.run(2)
        world.kube.apply(raw_topic("again", topicName="orders", cluster="alias"))
        await world.run(3)

        assert "Conflict" == world.kube.ready(key("again"))[1]


@in_virtual_time
async def test_the_same_name_on_two_kafka_clusters_is_no_conflict() -> None:
    """Each cluster has its own names."""
    async with running() as world:
        other = FakeKafka(Gate())
        other.cluster_id = "other"
        world.others["elsewhere:9092"] = other
        world.kube.apply(raw_cluster("second", "elsewhere:9092"))
        await settled_topic(world)
        world.kube.apply(raw_topic("orders-2", topicName="orders", cluster="second"))

        await world.until(lambda: world.kube.ready(key("orders-2"))[0] == "True", seconds=5)

        assert "orders" in other.topics


@in_virtual_time
async def test_an_unreachable_cluster_is_told_once_and_retried() -> None:
    """Ready=Unknown, back-off, one event for each resource, a status write each, and no more."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.reachable = False
        await world.run(2 * RESYNC_S)

        assert ("Unknown", "ClusterUnreachable") == world.kube.ready(ORDERS)[:2]
        assert 1 == world.kube.writes.count(str(ORDERS))
        assert ["Cluster main", "Topic orders"] == sorted(f"{n.key.kind} {n.key.name}" for n in world.kube.events)
        world.kafka.reachable = True
        assert await world.until(lambda: world.kube.ready(ORDERS)[0] == "True") < 20


@in_virtual_time
async def test_a_missing_cluster_is_told_and_noticed_when_it_comes() -> None:
    """Order of apply does not matter."""
    async with running(cluster=False) as world:
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "ClusterNotFound", seconds=2)
        assert "Unknown" == world.kube.ready(ORDERS)[0]

        world.kube.apply(raw_cluster())

        assert await world.until(lambda: world.kube.ready(ORDERS)[0] == "True") < 3


@in_virtual_time
async def test_a_controllers_failover_goes_unnoticed() -> None:
    """Nothing is written while the controller is replaced; what was asked for comes after it."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.has_controller = False
        world.kube.apply(raw_topic(partitions=8))
        await world.run(10)
        assert [] == world.kube.writes

        world.kafka.has_controller = True

        assert await world.until(lambda: len(world.kafka.topics["orders"].replicas) == 8) < 15


@in_virtual_time
async def test_conflicts_and_refusals_of_the_api_server_are_survived() -> None:
    """409 reads again, 5xx and 429 try again; the end is the same."""
    async with running() as world:
        await world.run(1)
        world.kube.failures += [ConflictError("409"), UnavailableError("503"), UnavailableError("429")]
        world.kube.apply(raw_topic())

        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True", seconds=10)


@in_virtual_time
async def test_a_foreign_write_between_look_and_write_is_not_lost() -> None:
    """A finalizer that somebody else adds while the topic is dropped stays: the version guards it."""
    async with running() as world:
        await settled_topic(world)

        def somebody_adds_a_finalizer() -> None:
            world.lose_watch_events = True
            world.kube.objects[ORDERS]["metadata"]["finalizers"].append("foreign/one")
            world.kube.touch(ORDERS)

        world.kafka.on_delete = somebody_adds_a_finalizer
        world.kube.delete(ORDERS)
        await world.run(10)

        assert ["foreign/one"] == world.kube.objects[ORDERS]["metadata"]["finalizers"]
        assert {} == world.kafka.topics


@in_virtual_time
async def test_a_finalizer_removed_by_hand_is_restored() -> None:
    """As long as the Topic is declared, it is held."""
    async with running() as world:
        await settled_topic(world)
        held = world.kube.objects[ORDERS]
        held["metadata"]["finalizers"] = []
        world.kube.apply(raw_topic(partitions=7))

        await world.run(5)

        assert [FINALIZER] == world.kube.objects[ORDERS]["metadata"]["finalizers"]


@in_virtual_time
async def test_lost_watch_events_are_made_up_for_by_the_resync() -> None:
    """A watch that stalls: created, changed and deleted all come through, later."""
    async with running() as world:
        await settled_topic(world)
        world.lose_watch_events = True
        world.kube.apply(raw_topic("unseen"))
        world.kube.apply(raw_topic(partitions=9))
        await world.run(RESYNC_S + 10)

        assert "True" == world.kube.ready(key("unseen"))[0]
        assert 9 == len(world.kafka.topics["orders"].replicas)
        world.kube.delete(key("unseen"))
        await world.run(RESYNC_S + 10)
        assert "unseen" not in world.kafka.topics
        assert key("unseen") not in world.kube.objects


@in_virtual_time
async def test_a_restart_with_everything_as_declared_writes_nothing() -> None:
    """O2, O3: the new process finds what is there."""
    async with running() as world:
        for index in range(30):
            world.kube.apply(raw_topic(f"t{index}", config={"retention.ms": "5"}))
        await world.run(20)
        await world.kill()
        world.kube.writes.clear()

        world.start()
        await world.run(60)

        assert [] == world.kube.writes
        assert world.core.loop.idle


@in_virtual_time
async def test_a_moving_topic_keeps_its_replication_factor() -> None:
    """While a partition moves it has the union of both; that is no other replication factor."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.move_s = 1000
        await world.kafka.alter_reassignments({Partition("orders", index): (2, 3, 4) for index in range(6)})
        world.kube.writes.clear()

        await world.run(RESYNC_S + 10)

        assert "True" == world.kube.ready(ORDERS)[0]
        assert [] == world.kube.writes


@in_virtual_time
async def test_a_topic_that_goes_while_it_moves_is_stopped_first() -> None:
    """C10: the deletion would wait for the move's end; a Topic and its Reassignment are often deleted in the same breath."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.move_s = 1000
        await world.kafka.alter_reassignments({Partition("orders", 0): (7, 8, 9)})
        assert world.kafka.moves

        world.kube.delete(ORDERS)
        await world.until(lambda: ORDERS not in world.kube.objects)

        assert {Partition("orders", 0): None} == world.kafka.submitted[-1]
        assert "orders" not in world.kafka.topics
