"""The settings of a quorum controller in Kafka's properties file."""

import logging
import re
from pathlib import Path

import pytest

from controller_core.model.mode_rules import RestartPolicy
from controller_core.shell.quorum.settings import MetadataLogSettings, QuorumSettings, QuorumTimes
from controller_core.shell.quorum.settings_file import read_settings_file
from controller_core.shell.quorum.settings_reading import USED, read_settings
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.ignored_settings import MAX_UNKNOWN_LOGGED, log_ignored
from kafka_node.security.endpoints import Address, Endpoint
from kafka_node.security.settings import SecurityProtocol
from tests.controller_core.shell.quorum.properties import DYNAMIC, STATIC, without

DISCONNECTED = "steward.broker.disconnected.session.timeout.ms"


def settings(values: dict[str, str]) -> QuorumSettings:
    """Return the settings of a file without names that are ignored."""
    read = read_settings(values)
    assert (read.unused, read.unknown) == ((), ())
    return read.settings


def refusal(values: dict[str, str]) -> str:
    """Return the message with which the values are refused."""
    with pytest.raises(SettingError) as raised:
        read_settings(values)
    return str(raised.value)


def test_a_short_file_gives_kafkas_defaults() -> None:
    """QuorumConfig, MetadataLogConfig and KRaftConfigs of Kafka 4.3.1."""
    found = settings(DYNAMIC)

    assert found.times == QuorumTimes(
        election_timeout_ms=1000,
        fetch_timeout_ms=2000,
        election_backoff_max_ms=1000,
        append_linger_ms=25,
        request_timeout_ms=2000,
        retry_backoff_ms=20,
        auto_join_enable=False,
        fetch_snapshot_max_bytes=1 << 20,
        fetch_max_bytes=1 << 20,
    )
    assert found.log == MetadataLogSettings(
        max_record_bytes_between_snapshots=20 << 20,
        max_snapshot_interval_ms=3_600_000,
        segment_bytes=1 << 30,
        segment_ms=604_800_000,
        max_retention_bytes=100 << 20,
        max_retention_ms=604_800_000,
        max_idle_interval_ms=500,
        max_batch_size_bytes=8 << 20,
        delete_delay_ms=60_000,
    )
    assert found.controller.broker_session_timeout_ms == 9000


def test_every_quorum_and_metadata_setting_of_kafka_is_read() -> None:
    """A newer Kafka's table shows what it added."""
    prefixes = ("controller.quorum.", "metadata.", "internal.metadata.")

    assert {name for name in SETTINGS if name.startswith(prefixes)} - USED == set()


def test_the_documentation_has_every_quorum_and_metadata_setting_with_its_default() -> None:
    """docs/format.md."""
    page = (Path(__file__).parents[4] / "docs" / "format.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `([a-z.]+)` \| (\S*) ?\| ", page, re.MULTILINE))

    assert documented == {
        name: row.default or ""
        for name, row in SETTINGS.items()
        if name.startswith(("controller.quorum.", "metadata."))
    }


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("steward.broker.restart.same.directories.enable", RestartPolicy(admits_same_directories=False)),
        ("steward.broker.restart.after.shutdown.enable", RestartPolicy(admits_after_shutdown=False)),
        ("steward.broker.disconnected.elected.last.enable", RestartPolicy(elects_suspected_last=False)),
    ],
)
def test_each_rule_for_restarted_brokers_can_be_turned_off(name: str, policy: RestartPolicy) -> None:
    """ADR 57: Kafka has none of these settings."""
    assert settings({**DYNAMIC, name: "false"}).controller.restarts == policy
    assert settings(DYNAMIC).controller.restarts == RestartPolicy()
    assert f"Invalid value maybe for configuration {name}" in refusal({**DYNAMIC, name: "maybe"})


def test_addresses_of_voters_and_servers_are_read() -> None:
    """With brackets around IPv6 addresses."""
    assert settings(STATIC).voters == {1: Address("127.0.0.1", 9093), 2: Address("host.example", 9093)}
    assert settings(DYNAMIC).bootstrap_servers == (Address("127.0.0.1", 9093), Address("::1", 9094))


def test_an_address_without_a_host_is_refused() -> None:
    """Kafka takes it, and then reaches no controller."""
    assert refusal(STATIC | {"controller.quorum.voters": "1@:1"}) == "controller.quorum.voters: ':1' is not HOST:PORT"


def test_the_metadata_is_in_the_first_directory_unless_it_has_one_of_its_own() -> None:
    """metadata.log.dir; all directories are formatted."""
    own = settings(STATIC | {"metadata.log.dir": "/meta"})

    assert settings(STATIC).metadata_log_directory == Path("/data/one")
    assert own.all_directories == (Path("/data/one"), Path("/data/two"), Path("/meta"))


def test_the_size_of_segments_in_tests_has_no_lower_bound() -> None:
    """internal.metadata.log.segment.bytes."""
    assert settings(STATIC | {"internal.metadata.log.segment.bytes": "100"}).log.segment_bytes == 100


def test_a_listener_on_all_interfaces_advertises_the_address_among_the_voters() -> None:
    """KafkaConfig.effectiveAdvertisedControllerListeners."""
    bound = {"listeners": "CONTROLLER://0.0.0.0:9099"}
    plaintext = SecurityProtocol.PLAINTEXT

    assert settings(STATIC | bound).advertised_listeners == (Endpoint("CONTROLLER", plaintext, "127.0.0.1", 9093),)
    assert settings(DYNAMIC | bound).advertised_listeners == (Endpoint("CONTROLLER", plaintext, "", 9099),)
    assert settings(DYNAMIC | bound | {"advertised.listeners": "CONTROLLER://me.example:1"}).advertised_listeners == (
        Endpoint("CONTROLLER", plaintext, "me.example", 1),
    )


def test_broker_id_is_another_name_of_node_id() -> None:
    """AbstractKafkaConfig.populateSynonyms."""
    assert settings(without(STATIC, "node.id") | {"broker.id": "2"}).node_id == 2
    assert "same value" in refusal(STATIC | {"broker.id": "2"})


def test_a_broker_is_refused_with_what_to_do() -> None:
    """Steward is only a controller."""
    assert refusal(STATIC | {"process.roles": "broker,controller"}) == (
        "process.roles is broker,controller: Steward is only a controller. Set process.roles=controller, and run brokers as "
        "Kafka processes of their own."
    )


def test_unknown_names_are_returned_apart_from_those_that_only_kafka_uses() -> None:
    """A typing error differs from a setting without effect."""
    used = {"max.connections.per.ip": "4", "listener.name.controller.max.connections": "3"}
    read = read_settings(STATIC | used | {"num.io.threads": "4", "controller.quorum.election.timeout": "1", "a": ""})

    assert read.unused == ("num.io.threads",)
    assert read.unknown == ("a", "controller.quorum.election.timeout")


def test_many_unknown_names_are_logged_in_a_bounded_number_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    """A file of another program floods no log."""
    values = STATIC | {f"other.{number:03}": "" for number in range(1000)} | {"num.io.threads": "4"}

    with caplog.at_level(logging.WARNING):
        log_ignored(read_settings(values))

    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        *["Ignoring unknown setting"] * MAX_UNKNOWN_LOGGED,
        "Ignoring more unknown settings",
        "Ignoring settings of Kafka that Steward does not use",
    ]


def test_values_of_settings_that_only_kafka_uses_are_checked_too() -> None:
    """As Kafka does: the file may serve a Kafka controller tomorrow."""
    assert (
        refusal(STATIC | {"num.io.threads": "0"})
        == "Invalid value 0 for configuration num.io.threads: Value must be at least 1"
    )


def test_config_providers_are_refused() -> None:
    """Their placeholders would be taken for passwords."""
    assert refusal(STATIC | {"config.providers": "file"}).startswith("config.providers is not supported")


def test_a_file_is_read(tmp_path: Path) -> None:
    """In Java's format."""
    path = tmp_path / "controller.properties"
    path.write_text("# mine\n" + "".join(f"{name} = {value}\n" for name, value in STATIC.items()))

    assert read_settings_file(path).settings == settings(STATIC)


def test_a_file_that_is_missing_too_large_or_malformed_is_refused_by_its_name(tmp_path: Path) -> None:
    """The message names the file."""
    large, malformed = tmp_path / "large", tmp_path / "malformed"
    large.write_bytes(b"#" * (1 << 20) + b"#")
    malformed.write_text("a=\\u1")
    refused = []
    for path in (tmp_path / "none", large, malformed):
        with pytest.raises(SettingError) as raised:
            read_settings_file(path)
        refused.append(str(raised.value).removeprefix(str(tmp_path)))

    assert refused == [
        "/none cannot be read: No such file or directory",
        "/large has over 1048576 bytes",
        "/malformed is not a properties file: Malformed \\uxxxx encoding.",
    ]


@pytest.mark.parametrize(
    ("given", "timeout_ms"),
    [
        ({}, 3_000),
        ({"broker.session.timeout.ms": "6000"}, 2_000),
        ({DISCONNECTED: "500"}, 500),
        ({DISCONNECTED: "20000"}, 9_000),
    ],
    ids=["a third of a session", "of another session", "its setting", "as long as a session"],
)
def test_a_disconnected_broker_has_a_third_of_a_session_or_the_time_of_its_setting(
    given: dict[str, str], timeout_ms: int
) -> None:
    """ADR 57: as long as a session turns the rule off."""
    assert settings({**DYNAMIC, **given}).controller.disconnected_session_timeout_ms == timeout_ms


@pytest.mark.parametrize("value", ["0", "-1", "soon"])
def test_the_time_of_a_disconnected_broker_is_a_positive_number(value: str) -> None:
    """In Kafka's words."""
    assert f"Invalid value {value} for configuration {DISCONNECTED}" in refusal({**DYNAMIC, DISCONNECTED: value})
