"""UnregisterBroker: an administrator declares that a broker never returns."""

from kafka_wire import ApiKey, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, call


async def test_deletions_stop_waiting_for_the_broker() -> None:
    """In ZooKeeper mode a broker that is not registered leaves no other state."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.cluster.stray_replicas[int(active.cluster.topics["a"].rows[0])] = {9}

    response = await call(active, ApiKey.UNREGISTER_BROKER, {"broker_id": 9})

    assert response["error_code"] == ErrorCode.NONE
    assert active.cluster.stray_replicas == {}


async def test_registered_broker_is_refused() -> None:
    """The message explains what to do."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await call(active, ApiKey.UNREGISTER_BROKER, {"broker_id": 1})

    assert response["error_code"] == ErrorCode.INVALID_REQUEST
    assert response["error_message"] == "Broker 1 is running. Stop it before it is unregistered."


async def test_standby_answers_not_controller() -> None:
    """The client looks up the controller."""
    response = await call(None, ApiKey.UNREGISTER_BROKER, {"broker_id": 9})

    assert response["error_code"] == ErrorCode.NOT_CONTROLLER
