"""A controller that is killed and restarted at once, while the session of the killed process still lasts."""

import asyncio

import pytest
from confluent_kafka.admin import AdminClient

from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.failures import ConnectionFailed
from lab.processes.waiting import wait_until
from tests.integration.clusters import call
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka


def controller_owner(held: Held) -> int:
    """Return the session that owns `/controller`; 0 if there is none."""
    stat = held.cluster.zookeeper.client.exists(f"{CHROOT}/controller")
    return 0 if stat is None else int(stat.ephemeralOwner)


def test_a_restarted_controller_never_lists_fewer_brokers_than_live(held: Held) -> None:
    """C5: until the predecessor's session ends the new process is a standby, and live brokers answer in its place.

    Every answer from readiness on lists all live brokers, for librdkafka as for a plain connection. On a machine so busy that the
    former session ends first, only the last part is tested.
    """
    held.wait_until_held()
    held.create("listed-by-brokers", partitions=1)
    live = set(held.cluster.brokers)
    former = controller_owner(held)
    held.controller.kill()
    held.controller.start()  # returns when /readyz answers 200
    while controller_owner(held) == former:
        answer = asyncio.run(call(held.controller.address(), ApiKey.METADATA, {"topics": None}))
        assert live <= {node["node_id"] for node in answer["brokers"]}
        assert "listed-by-brokers" in {topic["name"] for topic in answer["topics"]}
        admin = AdminClient({"bootstrap.servers": held.controller.address()})
        assert live <= set(admin.list_topics(timeout=PATIENCE_S).brokers)
        described = asyncio.run(call(held.controller.address(), ApiKey.DESCRIBE_CLUSTER, {}))
        assert live <= {node["broker_id"] for node in described["brokers"]}
    held.wait_until_held()
    wait_until(lambda: _lists_itself(held), timeout_s=PATIENCE_S, what="the controller answers by itself")
    held.create("made-after-restart", partitions=1)


def _lists_itself(held: Held) -> bool:
    answer = asyncio.run(call(held.controller.address(), ApiKey.METADATA, {"topics": None}))
    assert set(held.cluster.brokers) <= {node["node_id"] for node in answer["brokers"]}
    errors = {topic["error_code"] for topic in answer["topics"]}
    return errors <= {ErrorCode.NONE} and answer["controller_id"] == held.controller.controller_id


@pytest.mark.soak(
    "integration/test_controller_restart.py::test_a_restarted_controller_never_lists_fewer_brokers_than_live"
)
def test_every_answer_of_a_restarting_controller_lists_all_live_brokers(held: Held) -> None:
    """From its first connection on: a complete answer, or the connection is closed and the client asks another node."""
    held.wait_until_held()
    live = set(held.cluster.brokers)
    former = controller_owner(held)
    held.controller.kill()
    held.controller.launch()

    def answered_as_controller() -> bool:
        try:
            answer = asyncio.run(call(held.controller.address(), ApiKey.METADATA, {"topics": []}))
        except ConnectionFailed:
            return False
        assert live <= {node["node_id"] for node in answer["brokers"]}
        return controller_owner(held) not in (former, 0)

    wait_until(answered_as_controller, timeout_s=PATIENCE_S, what="an answer under the new session")
    held.controller.wait_until_ready()
    held.wait_until_held()
