"""Samples in a topic of a broker with TLS, a login and an authorizer: what `--kafka-properties` and which rights they need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from balance_analytics.jobs import facts
from balance_analytics.jobs.inputs import properties_of
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts
from balance_analytics.jobs.samples import Samples
from lab.peers.authority import Authority
from lab.peers.kraft import KraftNode
from tests.balance_analytics.jobs.test_kafka import LOAD, NOW_MS, PATIENCE_S, TOPIC, create, messages, produce
from tests.balance_analytics.published import FACT_ORDER, rows
from tests.kafka_operator.end_to_end.test_tokens_kafka_4 import MODULE, TOKENS, node

__all__ = ["node"]

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

SHARE = 6
"""Four hours of the day's samples: facts of some hours are enough."""

READ = AclBinding(
    ResourceType.TOPIC,
    TOPIC,
    ResourcePatternType.LITERAL,
    "User:analytics",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)


def run(spark: SparkSession, place: str, folder: Path, properties: Mapping[str, str]) -> list[Any]:
    """Run the stage that reads samples; return the facts."""
    samples = Samples(spark, place, properties)
    facts.run(
        spark,
        samples,
        str(folder / "facts"),
        str(folder / "out"),
        facts.FactsOptions(NOW_MS, window_days=14),
        LeftOuts(),
    )
    return rows(folder / "facts", order=FACT_ORDER)


@pytest.mark.shows("F23")
def test_the_analytics_read_the_samples_with_the_right_to_read_their_topic(
    spark: SparkSession, node: KraftNode, authority: Authority, tmp_path: Path
) -> None:
    """The properties are those of Kafka's Java client. Without Read on the topic the error names both."""
    open_to_all = f"127.0.0.1:{node.port}"
    create(open_to_all)
    produce(open_to_all, messages()[: len(messages()) // SHARE])
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority.certificate}\n"
        "sasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={MODULE} required unsecuredLoginStringClaim_sub="analytics";\n'
    )
    properties = properties_of(str(path))
    place = f"kafka://127.0.0.1:{node.ports[TOKENS]}/{TOPIC}"
    with pytest.raises(AnalyticsError, match=TOPIC) as caught:
        run(spark, place, tmp_path / "refused", properties)

    admin = AdminClient({"bootstrap.servers": open_to_all})
    admin.create_acls([READ])[READ].result(PATIENCE_S)

    assert "TopicAuthorizationException" in str(caught.value)
    assert len(run(spark, place, tmp_path / "secured", properties)) >= LOAD.partitions
