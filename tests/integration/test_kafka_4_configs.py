"""Configs at a controller's own listener (`--bootstrap-controller`): Steward's controller and that of Kafka 4.3 answer alike."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_log.files.properties_file import read_properties_file
from kafka_node import logger_levels
from kafka_wire import ApiKey, Body
from kafka_wire.net.connection import Connection
from lab.peers.kafka_tools import run_tool_of_kafka_4
from lab.peers.kraft import CONTROLLER, KraftNode
from lab.processes.ports import free_port
from tests.controller_core.shell.quorum.members import CLUSTER_ID
from tests.integration.steward_controllers import steward_cluster

pytestmark = pytest.mark.kafka

CONFIGS = "kafka.admin.ConfigCommand"
NODE_ID = 101
TIMEOUT_MS = 20_000

TIMES = {"controller.quorum.election.timeout.ms": "1000", "controller.quorum.fetch.timeout.ms": "2000"}
"""What the tests' controllers of Steward have in their files anyway."""

PLACES = {"listeners", "controller.quorum.voters", "log.dirs"}
"""Settings that differ because two processes cannot share a place."""

IGNORED = {"log.segment.bytes": "abc", "num.partitions": "7", "ssl.keystore.location": "/a"}
"""An invalid value, a setting that is not dynamic, and one that only listeners have: stored by the controller, and ignored by nodes."""

WRONG_METRICS = (
    *({"interval.ms": value} for value in ("99", "3600001", "x")),
    *({"match": value} for value in ("colour=red", "client_id", "client_id=", "client_id=a=b", "client_id=[")),
    *({"metrics": value} for value in ("a,,b",)),
    {"colour": "red"},
)
WRONG_GROUPS = (
    *({"consumer.session.timeout.ms": value} for value in ("1", "999999", "x", "0")),
    {"consumer.heartbeat.interval.ms": "1"},
    {"consumer.assignment.interval.ms": "999999"},
    {"streams.num.standby.replicas": "9"},
    {"share.delivery.count.limit": "999"},
    {"share.session.timeout.ms": "45000", "share.heartbeat.interval.ms": "60000"},
    *({"share.auto.offset.reset": value} for value in ("none", "by_duration:x", "by_duration:-PT1H")),
    {"share.isolation.level": "none"},
    {"colour": "red"},
)

ALTERED = (
    (4, "", {"max.connections": "500", "log.retention.ms": "777000", **IGNORED, "principal.builder.class": "a.B"}),
    (4, str(NODE_ID), {"max.connections.per.ip": "70", "log.flush.interval.ms": "7", **IGNORED}),
    (
        16,
        "sub",
        {
            "interval.ms": "1000",
            "metrics": "org.a.,org.b.,org.a.",
            "match": "client_id=app-.*,client_software_name=\\p{Alpha}+",
        },
    ),
    (32, "g1", {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "by_duration:PT1H"}),
    (32, "g2", {"streams.num.standby.replicas": "1", "share.isolation.level": "read_committed"}),
    (8, str(NODE_ID), {"root": "WARN"}),
)
"""Type and name of a resource, and the configs that are set on it."""

REFUSED = (
    *((16, f"sub-{place}", wrong) for place, wrong in enumerate(WRONG_METRICS)),
    (16, "", {"interval.ms": "1000"}),
    *((32, f"group-{place}", wrong) for place, wrong in enumerate(WRONG_GROUPS)),
    (32, "", {"consumer.session.timeout.ms": "50000"}),
    (2, "none", {"retention.ms": "5"}),
    (2, "none-2", {"retention.ms": "abc"}),
    (2, "", {"retention.ms": "5"}),
    (2, "a b", {"retention.ms": "5"}),
    *((4, name, {"max.connections": "5"}) for name in ("9", "x", "-3")),
    (3, "q", {"a": "b"}),
    *((8, name, {"root": "DEBUG"}) for name in ("9", "x", "")),
    *((8, str(NODE_ID), wrong) for wrong in ({"no.such": "DEBUG"}, {"root": "loud"})),
)
"""The same, refused."""

DESCRIBED = (
    *((4, str(NODE_ID)), (4, ""), (4, "1"), (4, "x"), (2, "none"), (2, "a b"), (2, "")),
    *((16, "sub"), (16, "other"), (16, ""), (32, "g1"), (32, "g2"), (32, "g3"), (32, "")),
    *((8, name) for name in ("9", "x", "")),
)
"""Types and names of resources."""


@pytest.fixture(autouse=True)
def level_of_root() -> Iterator[None]:
    """Steward's controllers run in this process: its root logger has its level again at the end."""
    level = logging.root.level
    yield
    logging.root.setLevel(level)


async def answers(port: int) -> tuple[list[Body], list[Body]]:
    """Set configs, and return the outcomes and the described resources."""
    connection = await Connection.open("127.0.0.1", port, client_id="test")

    async def results(key: ApiKey, body: Body, name: str) -> list[Body]:
        found: list[Body] = (await connection.call(key, body, timeout_ms=TIMEOUT_MS))[name]
        return found

    try:
        resources = [
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [{"name": key, "config_operation": 0, "value": value} for key, value in configs.items()],
            }
            for kind, name, configs in (*ALTERED, *REFUSED)
        ]
        while True:
            body: Body = {"resources": resources, "validate_only": False}
            altered = await results(ApiKey.INCREMENTAL_ALTER_CONFIGS, body, "responses")
            if not is_too_early(altered):
                break
            await asyncio.sleep(0.1)
        asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": None} for kind, name in DESCRIBED]
        body = {"resources": asked, "include_synonyms": True, "include_documentation": True}
        while True:
            described = await results(ApiKey.DESCRIBE_CONFIGS, body, "results")
            if has_changes(described):
                return sorted(altered, key=place_of), described
            await asyncio.sleep(0.1)
    finally:
        await connection.close()


def place_of(result: Body) -> tuple[int, str, str]:
    """Return what orders results: Kafka's are in no order."""
    return result["resource_type"], result["resource_name"], result["error_message"] or ""


def is_too_early(altered: Iterable[Body]) -> bool:
    """Whether the controller is not active yet, or not registered."""
    return any(
        result["error_code"] == 41 or (result["error_code"] == 102 and result["resource_name"] != "9")
        for result in altered
    )


def has_changes(described: Iterable[Body]) -> bool:
    """Whether the node has applied the changes, which it does after the controller has answered them; Kafka's sources come before values."""
    own = next(result for result in described if result["resource_name"] == str(NODE_ID))
    values = {config["name"]: config["value"] for config in own["configs"]}
    return (values["max.connections"], values["max.connections.per.ip"]) == ("500", "70")


def by_name(result: Body) -> Mapping[str, Any]:
    """Return the configs of a resource by name, without those of its place."""
    return {config["name"]: config for config in result["configs"] if config["name"] not in PLACES}


@pytest.mark.shows("F65")
def test_a_controller_describes_configs_as_kafkas_controller(tmp_path: Path) -> None:
    """The same properties file, changes and requests: values, sources, synonyms, documentation and errors are equal."""
    port = free_port()
    stock = KraftNode(
        NODE_ID,
        tmp_path,
        quorum=f"{NODE_ID}@127.0.0.1:{port}",
        cluster_id=CLUSTER_ID,
        controller_port=port,
        port=None,
        brokers=1,
        settings=TIMES,
    )
    try:
        stock.format()
        stock.launch()
        stock.wait_until_ready()
        kafkas_altered, kafkas = asyncio.run(answers(stock.ports[CONTROLLER]))
    finally:
        stock.close()
    file = read_properties_file(tmp_path / f"node-{NODE_ID}.properties")
    with steward_cluster(controllers=1, brokers=0, settings=without_places(file)) as cluster:
        cluster.wait_for_registration()
        altered, described = asyncio.run(answers(int(cluster.voters.rpartition(":")[2])))

    assert altered == kafkas_altered
    assert len(by_name(described[0])) > 300
    for ours, theirs in zip(described, kafkas, strict=True):
        assert by_name(ours) == by_name(theirs)
        assert {**ours, "configs": None} == {**theirs, "configs": None}


def without_places(file: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a file that two nodes can share."""
    return {name: value for name, value in file.items() if name not in PLACES}


@pytest.mark.shows("F65")
def test_kafka_configs_reaches_a_controller_by_its_own_listener() -> None:
    """KIP-919: kafka-configs --bootstrap-controller changes and describes."""
    with steward_cluster(controllers=1, brokers=0) as cluster:
        cluster.wait_for_registration()
        server = ("--bootstrap-controller", cluster.voters.partition("@")[2])
        own = ("--entity-type", "brokers", "--entity-name", str(NODE_ID))

        def run(*arguments: str) -> str:
            done = run_tool_of_kafka_4(CONFIGS, *server, *arguments)
            return done.stdout + done.stderr

        altered = run("--alter", *own, "--add-config", "max.connections.per.ip=70")
        run("--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "max.connections=500")
        described, everything = run("--describe", *own), run("--describe", *own, "--all")
        defaults = run("--describe", "--entity-type", "brokers", "--entity-default")
        loggers = ("--entity-type", "broker-loggers", "--entity-name", str(NODE_ID))
        level_changed = run("--alter", *loggers, "--add-config", f"{logger_levels.__name__}=DEBUG")
        levels = run("--describe", *loggers)
        run("--alter", *loggers, "--delete-config", logger_levels.__name__)

    assert "Completed updating config for broker 101." in altered
    synonyms = "{DYNAMIC_BROKER_CONFIG:max.connections.per.ip=70, DEFAULT_CONFIG:max.connections.per.ip=2147483647}"
    assert f"max.connections.per.ip=70 sensitive=false synonyms={synonyms}" in described
    assert "process.roles=controller sensitive=false" in everything
    assert "max.connections=500 sensitive=false" in defaults
    assert "Completed updating config for broker-logger 101." in level_changed
    assert f"{logger_levels.__name__}=DEBUG sensitive=false" in levels
    assert logging.getLogger(logger_levels.__name__).level == logging.NOTSET
