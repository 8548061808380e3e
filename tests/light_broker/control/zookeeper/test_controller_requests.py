"""Requests of a controller in ZooKeeper mode to a light broker."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.zookeeper.controller_requests import EPOCH_DURING_DELETE, VERSIONS, ControllerRequests
from light_broker.core.metadata_view import NO_LEADER, BrokerView, Endpoint, MetadataView, PartitionView

ME, OTHER, MY_EPOCH = 1, 2, 50
ORDERS = UUID(int=7)
FIRST = TopicPartition("orders", 0)


@dataclass
class Recording:
    """Records what the control plane asks of the broker. Implements BrokerSide, as far as these requests need it, and Metadata."""

    view: MetadataView = field(default_factory=lambda: MetadataView("cluster"))
    calls: list[tuple[object, ...]] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE

    def own(self) -> BrokerView:
        return BrokerView(ME, MY_EPOCH)

    def publish(self, view: MetadataView) -> None:
        self.view = view

    async def read_topics(self, names: Collection[str]) -> None:
        self.calls.append(("configs", *names))

    async def lead(self, name: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool) -> ErrorCode:
        assert self.view.partition(name) == state
        self.calls.append(("lead", name, topic_id, state.leader_epoch, is_new))
        return self.error

    async def follow(self, name: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool) -> ErrorCode:
        self.calls.append(("follow", name, topic_id, state.leader_epoch, is_new))
        return self.error

    async def stop(self, name: TopicPartition, *, delete: bool) -> ErrorCode:
        self.calls.append(("stop", name, delete))
        return self.error


class Conversation:
    """Requests to one broker, one after another; each passes through the codec in the highest version."""

    def __init__(self) -> None:
        self.broker = Recording()
        self.requests = ControllerRequests(self.broker, self.broker, ME)  # a part of BrokerSide

    def send(
        self, key: ApiKey, *, version: int | None = None, epoch: int = 1, broker_epoch: int = MY_EPOCH, **body: object
    ) -> Body:
        """Send a request and return the answer."""
        at = VERSIONS[key][1] if version is None else version
        whole = {"controller_id": OTHER, "controller_epoch": epoch, "broker_epoch": broker_epoch, **body}
        decoded = codec.decode(key.message + "Request", at, codec.encode(key.message + "Request", at, whole))
        answer = asyncio.run(self.requests.handle(key, at, decoded))
        return codec.decode(key.message + "Response", at, codec.encode(key.message + "Response", at, answer))

    def roles(
        self,
        leader_epoch: int,
        *,
        leader: int = ME,
        topic_id: UUID = ORDERS,
        replicas: tuple[int, ...] = (ME,),
        **how: int,
    ) -> ErrorCode:
        """Send LeaderAndIsr for `FIRST` and return the error of the partition."""
        state = {
            "partition_index": 0, "controller_epoch": 1, "leader": leader, "leader_epoch": leader_epoch, "isr": list(replicas),
            "partition_epoch": leader_epoch, "replicas": list(replicas), "is_new": leader_epoch == 0,
        }  # fmt: skip
        topic = {"topic_name": "orders", "topic_id": topic_id, "partition_states": [state]}
        answer = self.send(ApiKey.LEADER_AND_ISR, topic_states=[topic], live_leaders=[], **how)
        return ErrorCode.of(answer["topics"][0]["partition_errors"][0]["error_code"])

    def stopped(self, leader_epoch: int, *, delete: bool = True) -> ErrorCode:
        """Send StopReplica for `FIRST` and return the error of the partition."""
        state = {"partition_index": 0, "leader_epoch": leader_epoch, "delete_partition": delete}
        answer = self.send(ApiKey.STOP_REPLICA, topic_states=[{"topic_name": "orders", "partition_states": [state]}])
        return ErrorCode.of(answer["partition_errors"][0]["error_code"])

    def metadata(self, *partitions: int, leader: int = ME, **how: int) -> ErrorCode:
        """Send UpdateMetadata for partitions of `orders`, and return the error."""
        states = [
            {
                "partition_index": number, "controller_epoch": 1, "leader": leader, "leader_epoch": 3, "isr": [ME],
                "zk_version": 4, "replicas": [ME], "offline_replicas": [],
            }
            for number in partitions
        ]  # fmt: skip
        endpoint = {"port": 9092, "host": "b", "listener": "CLIENT", "security_protocol": 0}
        brokers = [{"id": broker_id, "endpoints": [endpoint], "rack": None} for broker_id in (ME, OTHER)]
        topics = [{"topic_name": "orders", "topic_id": ORDERS, "partition_states": states}] if partitions else []
        answer = self.send(ApiKey.UPDATE_METADATA, topic_states=topics, live_brokers=brokers, **how)
        return ErrorCode.of(answer["error_code"])


def test_a_partition_whose_leader_is_this_broker_is_led_after_its_configs_were_read() -> None:
    """ReplicaManager.makeLeaders: the configs of a new topic are read before its log is created."""
    one = Conversation()

    assert one.roles(0) is ErrorCode.NONE
    assert one.broker.calls == [("configs", "orders"), ("lead", FIRST, ORDERS, 0, True)]


def test_a_partition_of_another_leader_is_followed() -> None:
    """ReplicaManager.makeFollowers."""
    one = Conversation()

    assert one.roles(3, leader=OTHER, replicas=(OTHER, ME)) is ErrorCode.NONE
    assert one.broker.calls[1:] == [("follow", FIRST, ORDERS, 3, False)]


@pytest.mark.parametrize("leader_epoch", [4, 5])
def test_a_leader_epoch_that_is_not_higher_is_refused(leader_epoch: int) -> None:
    """ReplicaManager.becomeLeaderOrFollower: STALE_CONTROLLER_EPOCH, also for an equal epoch."""
    one = Conversation()
    one.roles(5)

    assert one.roles(leader_epoch) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert len([call for call in one.broker.calls if call[0] == "lead"]) == 1


def test_a_topic_that_gets_its_id_is_accepted_with_an_equal_epoch() -> None:
    """The controller gives ids to old topics without another epoch (KIP-516)."""
    one = Conversation()
    one.roles(5, topic_id=UUID(int=0))

    assert one.roles(5) is ErrorCode.NONE


def test_another_topic_of_the_name_is_refused() -> None:
    """INCONSISTENT_TOPIC_ID, until StopReplica has deleted the former topic."""
    one = Conversation()
    one.roles(5)

    assert one.roles(6, topic_id=UUID(int=8)) is ErrorCode.INCONSISTENT_TOPIC_ID
    one.stopped(EPOCH_DURING_DELETE)
    assert one.roles(0, topic_id=UUID(int=8)) is ErrorCode.NONE


def test_a_partition_without_a_replica_here_is_refused() -> None:
    """UNKNOWN_TOPIC_OR_PARTITION."""
    assert Conversation().roles(0, replicas=(OTHER,)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_error_of_the_broker_is_the_error_of_the_partition_and_leaves_no_role() -> None:
    """KAFKA_STORAGE_ERROR of an offline directory; the same state is accepted once it works."""
    one = Conversation()
    one.broker.error = ErrorCode.KAFKA_STORAGE_ERROR

    assert one.roles(5) is ErrorCode.KAFKA_STORAGE_ERROR
    one.broker.error = ErrorCode.NONE
    assert one.roles(5) is ErrorCode.NONE


def test_a_stop_with_an_older_leader_epoch_is_fenced() -> None:
    """FENCED_LEADER_EPOCH, but for the epoch of a deletion (KIP-570)."""
    one = Conversation()
    one.roles(5)

    assert one.stopped(4) is ErrorCode.FENCED_LEADER_EPOCH
    assert one.stopped(EPOCH_DURING_DELETE) is ErrorCode.NONE
    assert one.broker.calls[-1] == ("stop", FIRST, True)


def test_a_request_of_an_earlier_controller_changes_nothing() -> None:
    """STALE_CONTROLLER_EPOCH, for the request and each of its partitions."""
    one = Conversation()
    one.metadata(epoch=9)

    assert one.roles(5, epoch=8) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert one.metadata(0, epoch=8) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert (one.broker.view.topics, one.broker.calls) == ({}, [("configs",)])


def test_a_request_for_an_earlier_registration_changes_nothing() -> None:
    """STALE_BROKER_EPOCH (KAFKA-7235); a request without an epoch, -1, is for any registration."""
    one = Conversation()

    assert one.metadata(0, broker_epoch=MY_EPOCH - 1) is ErrorCode.STALE_BROKER_EPOCH
    assert one.metadata(0, broker_epoch=-1) is ErrorCode.NONE


def test_the_metadata_has_the_controller_the_brokers_and_the_partitions() -> None:
    """ZkMetadataCache.updateMetadata; only this broker's epoch is known."""
    one = Conversation()

    one.metadata(0, 1)

    view = one.broker.view
    state = PartitionView((ME,), (ME,), ME, 3, 4)
    at = {"CLIENT": Endpoint("b", 9092)}
    assert view.controller_id == OTHER
    assert view.brokers == {ME: BrokerView(ME, MY_EPOCH, None, at), OTHER: BrokerView(OTHER, -1, None, at)}
    assert view.topics["orders"].partitions == (state, state)
    assert view.topic_names_by_id == {ORDERS: "orders"}


def test_a_topic_whose_partitions_are_deleted_is_gone() -> None:
    """LEADER_DURING_DELETE in UpdateMetadata."""
    one = Conversation()
    one.metadata(0, 1)

    one.metadata(1, leader=-2)
    assert len(one.broker.view.topics["orders"].partitions) == 1
    one.metadata(0, leader=-2)
    assert (one.broker.view.topics, one.broker.view.topic_names_by_id) == ({}, {})


def test_a_start_is_complete_with_the_metadata_and_a_role_in_each_partition_here() -> None:
    """KafkaController.onBrokerStartup: UpdateMetadata, then LeaderAndIsr."""
    one = Conversation()
    at_first = one.requests.is_complete()
    one.metadata(0)
    with_metadata = one.requests.is_complete()
    one.roles(leader_epoch=4)

    assert (at_first, with_metadata, one.requests.is_complete()) == (False, False, True)


def test_a_start_is_not_complete_while_a_leader_is_to_be_elected() -> None:
    """The controller elects this broker next, since it is in the ISR."""
    one = Conversation()
    one.metadata(0, leader=NO_LEADER)
    one.roles(leader_epoch=3, leader=NO_LEADER)
    before = one.requests.is_complete()
    one.metadata(0)
    one.roles(leader_epoch=4)

    assert (before, one.requests.is_complete()) == (False, True)


def test_without_partitions_a_start_is_complete_with_the_metadata() -> None:
    """There is nothing to lead or follow."""
    one = Conversation()

    one.metadata()

    assert one.requests.is_complete()


def test_version_4_of_leader_and_isr_answers_by_names() -> None:
    """Topics have no ids before version 5."""
    one = Conversation()
    state = {
        "partition_index": 0, "controller_epoch": 1, "leader": ME, "leader_epoch": 0, "isr": [ME], "partition_epoch": 0,
        "replicas": [ME],
    }  # fmt: skip
    topics = [{"topic_name": "orders", "partition_states": [state]}]

    answer = one.send(ApiKey.LEADER_AND_ISR, version=4, topic_states=topics, live_leaders=[])

    assert [(error["topic_name"], error["error_code"]) for error in answer["partition_errors"]] == [("orders", 0)]
