"""DescribeCluster (KIP-700)."""

from dataclasses import replace

from kafka_wire import ApiKey, ErrorCode
from tests.light_broker.fixed_control import CLUSTER_ID, view_of
from tests.light_broker.shell.apis.calls import broker_with, call


async def test_describe_cluster_lists_the_brokers_of_the_callers_listener() -> None:
    """Source: AuthHelper.computeDescribeClusterResponse."""
    answer = await call(broker_with(view_of(brokers=(1, 2))), ApiKey.DESCRIBE_CLUSTER, {})

    assert answer is not None
    assert (answer["cluster_id"], answer["controller_id"]) == (CLUSTER_ID, 1)
    assert [(broker["broker_id"], broker["host"], broker["port"]) for broker in answer["brokers"]] == [
        (1, "broker.example", 9001),
        (2, "broker.example", 9002),
    ]


async def test_a_fenced_broker_is_listed_only_where_the_request_includes_it() -> None:
    """KIP-1073."""
    view = view_of(brokers=(1, 2))
    broker = broker_with(replace(view, brokers={1: view.brokers[1], 2: replace(view.brokers[2], is_fenced=True)}))

    plain = await call(broker, ApiKey.DESCRIBE_CLUSTER, {})
    fenced_too = await call(broker, ApiKey.DESCRIBE_CLUSTER, {"include_fenced_brokers": True})

    assert plain is not None
    assert fenced_too is not None
    assert [broker["broker_id"] for broker in plain["brokers"]] == [1]
    assert [(broker["broker_id"], broker["is_fenced"]) for broker in fenced_too["brokers"]] == [(1, False), (2, True)]


async def test_the_endpoints_of_controllers_are_refused() -> None:
    """A broker does not know them: MISMATCHED_ENDPOINT_TYPE (KIP-919)."""
    answer = await call(broker_with(view_of()), ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 2})

    assert answer is not None
    assert answer["error_code"] == ErrorCode.MISMATCHED_ENDPOINT_TYPE
