"""Dynamic configs of nodes that apply. Source: DynamicBrokerConfig.fromPersistentProps."""

import pytest

from kafka_node.configs.dynamic_values import applicable


@pytest.mark.parametrize(
    ("name", "text", "of_one_node", "of_all_nodes"),
    [
        ("max.connections", "5", True, True),
        ("max.connections", "five", False, False),
        ("num.partitions", "5", False, False),
        ("custom.name", "anything", True, True),
        ("ssl.keystore.location", "/a", False, False),
        ("listener.name.a.ssl.keystore.location", "/a", True, False),
        ("listener.name.a.max.connections", "5", True, True),
        ("listener.name.a.max.connections", "five", False, False),
        ("sasl.enabled.mechanisms", "PLAIN", True, False),
        ("cordoned.log.dirs", "/a", True, False),
    ],
)
def test_a_config_applies_where_kafka_applies_it(name: str, text: str, of_one_node: bool, of_all_nodes: bool) -> None:
    """Invalid values, settings that are not dynamic, and keys without a listener's prefix are ignored; some are no defaults of all nodes."""
    found = [applicable({name: text}, of_all_nodes=of_all) for of_all in (False, True)]

    assert found == [{name: text} if applies else {} for applies in (of_one_node, of_all_nodes)]
