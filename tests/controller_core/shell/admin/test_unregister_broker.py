"""UnregisterBroker: an operator declares that a broker never returns."""

from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, ask


async def test_what_a_broker_may_hold_is_not_waited_for_any_longer() -> None:
    """The only trace of a broker that is not registered in ZooKeeper mode."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.cluster.stray_replicas[int(active.cluster.topics["a"].rows[0])] = {9}

    response = await ask(active, ApiKey.UNREGISTER_BROKER, {"broker_id": 9})

    assert response["error_code"] == ErrorCode.NONE
    assert active.cluster.stray_replicas == {}


async def test_a_broker_that_runs_is_not_unregistered() -> None:
    """In words that say what to do."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await ask(active, ApiKey.UNREGISTER_BROKER, {"broker_id": 1})

    assert response["error_code"] == ErrorCode.INVALID_REQUEST
    assert response["error_message"] == "Broker 1 is running. Stop it before it is unregistered."


async def test_a_process_without_the_cluster_says_so() -> None:
    """NOT_CONTROLLER: the client looks for the controller."""
    response = await ask(None, ApiKey.UNREGISTER_BROKER, {"broker_id": 9})

    assert response["error_code"] == ErrorCode.NOT_CONTROLLER
