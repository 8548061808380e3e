"""Operations required by each API (KafkaApis): complete, and consistent with the schemas."""

import pytest

from controller_core.shell.admin.topic_authorization import AUTHORIZED_BY_HANDLER, REQUEST_FILTERS
from controller_core.zookeeper_mode.apis import SERVED
from controller_core.zookeeper_mode.required_rights import NEEDS
from kafka_node.authorization.needs import On
from kafka_node.authorization.table import OPEN, needs_of
from kafka_node.versions import BETWEEN_SERVERS
from kafka_wire import ApiKey
from tests.cases import case
from tests.kafka_node.authorization.samples import by_name, sample, versions_of

OPEN_TO_ALL = {
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}
KIP_98 = 3


def test_every_served_or_relayed_api_has_a_row() -> None:
    """No request is served or relayed without authorization."""
    neither = BETWEEN_SERVERS - set(SERVED)

    assert set(ApiKey) - neither == set(NEEDS)


def test_an_api_without_required_operations_is_screened_or_open_on_purpose() -> None:
    """No row is empty by mistake."""
    assert {key for key, row in NEEDS.items() if row == OPEN} == OPEN_TO_ALL | set(
        REQUEST_FILTERS
    ) | AUTHORIZED_BY_HANDLER


@pytest.mark.parametrize("key", NEEDS, ids=by_name)
def test_required_resources_are_found_in_every_version(key: ApiKey) -> None:
    """Every path exists, and in each version one of them contains the topics."""
    for version in versions_of(key):
        with case(key.message, version):
            body = sample(key, version)
            for need in needs_of(NEEDS, key, version, body):
                if isinstance(need, On):
                    found = [*need.names(body), *need.topic_ids(body)]
                    # Produce had no transactional id before KIP-98.
                    assert found or (key is ApiKey.PRODUCE and version < KIP_98 and need.path == "transactional_id"), (
                        need
                    )
