"""Kafka accepts and refuses the same properties files of controllers."""

import pytest

from controller_core.shell.quorum.settings_reading import read_settings
from kafka_node.configs import setting_table
from kafka_node.configs.setting_rules import SettingError
from tests.cases import case
from tests.controller_core.shell.quorum.judge import StorageJudge
from tests.controller_core.shell.quorum.properties import DYNAMIC, STATIC, without

pytestmark = [pytest.mark.java, pytest.mark.slow]

TWO = {"listeners": "CONTROLLER://:9093,OTHER://127.0.0.1:9094", "controller.listener.names": "CONTROLLER,OTHER"}

ACCEPTED: list[dict[str, str]] = [
    STATIC,
    DYNAMIC,
    STATIC | DYNAMIC,
    STATIC | TWO,
    DYNAMIC | TWO,
    STATIC | TWO | {"controller.listener.names": "OTHER,CONTROLLER"},
    STATIC | {"listeners": "CONTROLLER://0.0.0.0:9000"},
    DYNAMIC | {"listeners": "CONTROLLER://0.0.0.0:9000"},
    DYNAMIC | {"advertised.listeners": "CONTROLLER://[::1]:9000"},
    DYNAMIC | {"metadata.log.dir": "/elsewhere"},
    STATIC | {"log.dirs": "/a,/a", "controller.listener.names": "CONTROLLER,CONTROLLER"},
    without(DYNAMIC, "log.dirs") | {"log.dir": "/a"},
    without(DYNAMIC, "node.id") | {"broker.id": "7"},
    DYNAMIC | {"listener.security.protocol.map": "CONTROLLER:plaintext"},
    DYNAMIC | {"metadata.log.segment.bytes": " 8388608 ", "controller.quorum.auto.join.enable": "TRUE"},
    DYNAMIC | {"controller.quorum.fetch.timeout.ms": "0", "metadata.max.idle.interval.ms": "0"},
    DYNAMIC
    | {"listeners": "CONTROLLER://127.0.0.1:9000,SIX://[::1]:9000", "controller.listener.names": "CONTROLLER,SIX"},
    DYNAMIC | {"listeners": "controller://:9093"},
]

REFUSED: list[dict[str, str]] = [
    {},
    *(without(STATIC, name) for name in ("process.roles", "node.id", "controller.quorum.voters")),
    without(STATIC, "controller.listener.names"),
    without(STATIC, "listeners"),
    STATIC | {"process.roles": "controler"},
    STATIC | {"process.roles": ""},
    STATIC | {"node.id": "-1"},
    STATIC | {"node.id": "one"},
    STATIC | {"node.id": "3"},
    STATIC | {"broker.id": "2"},
    STATIC | {"log.dirs": ""},
    STATIC | {"controller.listener.names": ""},
    STATIC | {"controller.listener.names": "OTHER"},
    STATIC | {"controller.listener.names": "controller"},
    STATIC | {"inter.broker.listener.name": "CONTROLLER"},
    STATIC
    | {"listeners": "CONTROLLER://:9093,OTHER://:9094", "listener.security.protocol.map": "CONTROLLER:PLAINTEXT"},
    STATIC | TWO | {"controller.listener.names": "CONTROLLER"},
    STATIC | {"listeners": "CONTROLLER:9093"},
    STATIC | TWO | {"listeners": "CONTROLLER://:9093,OTHER://:9093"},
    STATIC | {"listener.security.protocol.map": "CONTROLLER:TLS"},
    STATIC | {"listener.security.protocol.map": "OTHER:PLAINTEXT"},
    STATIC | {"advertised.listeners": "CONTROLLER://0.0.0.0:9093"},
    *(STATIC | {"controller.quorum.voters": text} for text in ("1@host", "host:1", "x@host:1", "1@a@b:1", "1@h:x")),
    *(DYNAMIC | {"controller.quorum.bootstrap.servers": text} for text in ("host", "host:x", "")),
    *(
        DYNAMIC | {name: value}
        for name, value in {
            "controller.quorum.fetch.max.bytes": "0",
            "controller.quorum.fetch.snapshot.max.bytes": "0",
            "controller.quorum.election.timeout.ms": "-1",
            "controller.quorum.fetch.timeout.ms": "-1",
            "controller.quorum.election.backoff.max.ms": "-1",
            "controller.quorum.append.linger.ms": "-1",
            "controller.quorum.retry.backoff.ms": "-1",
            "controller.quorum.request.timeout.ms": "1.5",
            "controller.quorum.auto.join.enable": "yes",
            "metadata.log.segment.bytes": "8388607",
            "metadata.log.max.record.bytes.between.snapshots": "0",
            "metadata.log.max.snapshot.interval.ms": "-1",
            "metadata.max.idle.interval.ms": "-1",
            "metadata.max.retention.ms": "9223372036854775808",
        }.items()
    ),
]


def test_kafka_reads_the_same_addresses_from_files_that_are_accepted(judge: StorageJudge) -> None:
    """The advertised controller listeners in their order, and the metadata directory."""
    for values in ACCEPTED:
        with case(values):
            read = read_settings(values).settings
            lines = [
                f"{listener.listener} {listener.security_protocol} {listener.host or 'null'} {listener.port}"
                for listener in read.advertised_listeners
            ]

            assert "\n".join([*lines, str(read.metadata_log_directory), ""]) == judge.settings(values).output


def test_kafka_refuses_the_same_files(judge: StorageJudge) -> None:
    """With its own message."""
    for values in REFUSED:
        with case(values):
            with pytest.raises(SettingError):
                read_settings(values)

            assert judge.settings(values).error is not None


def test_the_table_has_kafkas_settings_and_defaults(judge: StorageJudge) -> None:
    """`make schemas` draws the table."""
    rows = [
        f"{row.name} {str(not row.is_required).lower()} {'null' if row.default is None else row.default}"
        for row in setting_table.ROWS
    ]

    assert rows == judge.defaults()
