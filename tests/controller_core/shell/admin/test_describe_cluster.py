"""DescribeCluster (KIP-700, KIP-919, AuthHelper.computeDescribeClusterResponse)."""

import pytest

from kafka_wire import ApiKey, ErrorCode
from tests.controller_core.shell.admin.api_calls import call, pick
from tests.controller_core.shell.admin.fake_active import CONTROLLER, active_with, broker


async def test_nodes_and_controller() -> None:
    """The controller is one of the nodes."""
    active = active_with(broker(1, "north"))

    response = await call(active, ApiKey.DESCRIBE_CLUSTER, {})

    assert (
        response["error_code"],
        response["error_message"],
        response["cluster_id"],
        response["controller_id"],
        response["endpoint_type"],
    ) == (ErrorCode.NONE, None, "cluster-of-tests", CONTROLLER, 1)
    assert [pick(node, "broker_id", "host", "port", "rack") for node in response["brokers"]] == [
        {"broker_id": 1, "host": "broker1", "port": 9001, "rack": "north"},
        {"broker_id": CONTROLLER, "host": "steward", "port": 9990, "rack": "north"},
    ]


async def test_all_operations_are_authorized_without_an_authorizer() -> None:
    """KIP-430; only returned on request."""
    operations = [
        (await call(active_with(), ApiKey.DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": includes}))[
            "cluster_authorized_operations"
        ]
        for includes in (True, False)
    ]

    assert operations == [0x1FA0, -(2**31)]


async def test_unlisted_controller_has_id_minus_one() -> None:
    """Clients take its address from the list."""
    response = await call(active_with(), ApiKey.DESCRIBE_CLUSTER, {}, listener="ELSEWHERE")

    assert (response["controller_id"], response["brokers"]) == (-1, [])


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 7"),
    ],
)
async def test_other_endpoint_types_are_refused(endpoint_type: int, code: ErrorCode, message: str) -> None:
    """KIP-919: endpoints of KRaft controllers."""
    response = await call(active_with(), ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": endpoint_type})

    assert (code, message, []) == (response["error_code"], response["error_message"], response["brokers"])


async def test_standby_answers_not_controller() -> None:
    """As a top-level error."""
    response = await call(None, ApiKey.DESCRIBE_CLUSTER, {})

    assert (
        response["error_code"],
        response["cluster_id"],
        response["controller_id"],
        response["brokers"],
    ) == (ErrorCode.NOT_CONTROLLER, "", -1, [])
