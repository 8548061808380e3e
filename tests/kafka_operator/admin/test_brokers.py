"""Requests to single brokers: sizes of logs, and settings of a broker."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kafka_operator.admin import brokers, requests
from kafka_operator.decide.kafka.layout import Disks, Layout, size_of, sizes_of
from kafka_operator.decide.kafka.observed import Failure, KafkaPartition
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.resources.reassignment import Partition
from kafka_wire import Body, codec
from tests.kafka_operator.fake_connection import AWAY, FakeConnection

P0, P1 = Partition("orders", 0), Partition("orders", 1)
CHANGE = AlterBroker(3, (("a", "1"), ("b", None)))


def answer(**fields: Any) -> Body:
    """A part of a response's body."""
    return fields


def connection(**answers: Body) -> FakeConnection:
    """`connection(b1=...)`: the other brokers do not answer."""
    return FakeConnection(lambda node, _: answers.get(f"b{node}", AWAY))


@pytest.mark.parametrize("version", [1, 4])
def test_requests_can_be_encoded_in_the_versions_that_brokers_speak(version: int) -> None:
    """For some partitions, and for all."""
    for request in (brokers.log_dirs_request([P0, P1]), brokers.log_dirs_request(None)):
        assert codec.encode_request(request.key, version, 0, None, request.body)
    request = brokers.broker_configs_request(CHANGE)
    assert codec.encode_request(request.key, min(version, 1), 0, None, request.body)


def logs(*directories: Any, code: int = 0) -> Body:
    """A DescribeLogDirs answer."""
    return answer(error_code=code, results=list(directories))


def directory(code: int = 0, future: bool = False, **sizes: int) -> Any:
    """One log directory: `directory(p0=5)`."""
    partitions = [
        answer(partition_index=int(name[1:]), partition_size=size, is_future_key=future) for name, size in sizes.items()
    ]
    return answer(error_code=code, topics=[answer(name="orders", partitions=partitions)])


async def test_sizes_are_read_from_all_disks_and_each_broker_speaks_for_itself() -> None:
    """One that does not answer holds up none; a copy on its way to another disk is not counted twice."""
    asked = connection(
        b1=logs(directory(p0=5), directory(p1=7), directory(future=True, p1=3)), b2=logs(directory(p0=4))
    )

    found = await brokers.query_logs(asked, [1, 2, 3], [P0, P1])

    assert found[1] == {P0: 5, P1: 7}
    assert isinstance(found[3], Failure)
    assert sizes_of(found) == {P0: {1: 5, 2: 4}, P1: {1: 7}}
    assert (size_of(P0, sizes_of(found)), size_of(Partition("x", 0), {})) == (5, 0)


def test_the_reason_of_a_broker_that_refuses_is_reported() -> None:
    """No right to describe the cluster; or one disk that failed and one that did not."""
    refused = brokers.logs_of(logs(code=31))
    assert isinstance(refused, Failure)
    assert refused.code == 31
    assert brokers.logs_of(logs(directory(code=56), directory(p0=5))) == {P0: 5}
    assert isinstance(brokers.logs_of(logs(directory(code=56))), Failure)


async def test_only_what_is_set_on_the_broker_itself_is_read() -> None:
    """A value inherited from the cluster's default is not set on the broker, and not restored there."""
    entries = [
        answer(name="a", value="1", config_source=2),
        answer(name="b", value="2", config_source=3),
        answer(name="c", value=None, config_source=2),
    ]
    response = answer(results=[answer(error_code=0, error_message=None, configs=entries)])

    found = await brokers.query_broker_configs(connection(b1=response), [1, 2], ["a", "b", "c"])

    assert found[1] == {"a": "1"}
    assert isinstance(found[2], Failure)


async def test_changes_are_refused_one_by_one() -> None:
    """The brokers that took theirs are not named."""
    taken = answer(responses=[answer(error_code=0, error_message=None)])
    refused = answer(responses=[answer(error_code=29, error_message="No.")])
    asked = connection(b1=taken, b2=refused)

    failures = await brokers.change_broker_configs(asked, [AlterBroker(n, CHANGE.changes) for n in (1, 2, 3)])

    assert failures.keys() == {2, 3}
    assert failures[2].message == "No."


def test_a_layout_has_topics_and_racks_of_brokers() -> None:
    """Leaders, replicas and those in sync; a controller that is no broker is left out."""
    partitions = [answer(partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1])]
    response = answer(
        topics=[
            answer(error_code=0, name="orders", topic_id=uuid.UUID(int=0), partitions=partitions),
            answer(error_code=29, name="secret", topic_id=uuid.UUID(int=0), partitions=[]),
        ],
        brokers=[answer(node_id=1, rack="a"), answer(node_id=2, rack=None), answer(node_id=9, rack="c")],
    )

    layout: Layout = requests.layout_of(response, (1, 2))

    assert layout.racks == {1: "a", 2: None}
    assert layout.topics["orders"].partitions == (KafkaPartition(0, 1, (1, 2), (1,)),)
    assert list(layout.topics) == ["orders"]
    assert requests.metadata_request(None).body["topics"] is None


def volume(total: int = -1, usable: int = -1) -> Any:
    """A log directory of an answer of version 4 or later; without sizes the broker cannot determine them."""
    return answer(error_code=0, topics=[], total_bytes=total, usable_bytes=usable)


def test_disks_are_the_sum_of_volumes_and_directories_of_one_volume_count_once() -> None:
    """KIP-827 has the sizes of the volume in each of its directories."""
    same, other = volume(1_000, 400), volume(500, 100)

    assert brokers.disks_of(logs(same, same, other)) == Disks(1_500, 500)


async def test_brokers_that_do_not_report_disks_are_left_out_and_failures_are_kept() -> None:
    """Versions before 4 have no such fields; an authorizer may refuse."""
    old = logs(directory(p0=5))
    found = await brokers.query_disks(
        connection(b1=old, b2=logs(volume()), b3=logs(code=31), b4=logs(volume(10, 4))), [1, 2, 3, 4, 5]
    )

    assert found[4] == Disks(10, 4)
    assert {broker: item.name for broker, item in found.items() if isinstance(item, Failure)} == {
        3: "CLUSTER_AUTHORIZATION_FAILED",
        5: "BROKER_NOT_AVAILABLE",
    }
    assert sorted(found) == [3, 4, 5]


@pytest.mark.parametrize("version", [1, 4])
def test_a_request_for_disks_names_no_partition(version: int) -> None:
    """An empty list is none, and not null, which is all of them."""
    empty, every = map(brokers.log_dirs_request, ((), None))
    first, second = (codec.encode_request(request.key, version, 0, None, request.body) for request in (empty, every))

    assert first != second
