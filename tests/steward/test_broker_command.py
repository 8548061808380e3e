"""`steward broker`: its settings and exit codes."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steward.main import app

RUNNER = CliRunner()


def run(*arguments: str) -> tuple[int, str]:
    """Return exit code and outputs of a command that does not start."""
    result = RUNNER.invoke(app, ["broker", *arguments])
    return result.exit_code, result.output


def test_a_broker_in_a_cluster_is_not_supported_yet() -> None:
    """The message has what to do."""
    code, output = run()

    assert code == 2
    assert "add --standalone" in output


def test_a_zookeeper_that_cannot_be_reached_is_exit_code_1(tmp_path: Path) -> None:
    """The message has the connect string and what to check; `zookeeper.connect` selects ZooKeeper mode."""
    settings = (f"log.dirs={tmp_path}", "zookeeper.connect=127.0.0.1:1", "zookeeper.connection.timeout.ms=1")

    code, output = run(*(word for setting in settings for word in ("--override", setting)))

    assert code == 1
    assert "no session with ZooKeeper at 127.0.0.1:1" in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--override", "num.partitions"), "is not NAME=VALUE"),
        (("--override", "num.partitions=x"), "num.partitions"),
        (("--override", "authorizer.class.name=com.example.Mine"), "cannot run Java classes"),
        (("--override", "max.connections.per.ip.overrides=x"), "max.connections.per.ip.overrides has 'x'"),
        (("--override", "offsets.topic.compression.codec=9"), "offsets.topic.compression.codec is 9"),
        (("no-such-file.properties",), "cannot be read"),
    ],
)
def test_wrong_settings_are_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    """With the setting, on the standard error."""
    code, output = run("--standalone", *arguments)

    assert code == 2
    assert message in output


def test_a_folder_of_another_cluster_is_exit_code_1(tmp_path: Path) -> None:
    """Nothing in it is changed."""
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")

    code, output = run(
        "--standalone", "--override", f"log.dirs={tmp_path}", "--override", "listeners=PLAINTEXT://127.0.0.1:0"
    )

    assert code == 1
    assert "belongs to a cluster with controllers" in output
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


@pytest.mark.parametrize("setting", ["listeners", "--metrics-port"])
def test_an_address_that_is_in_use_is_exit_code_1(tmp_path: Path, setting: str) -> None:
    """The message has the address and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        used = server.getsockname()[1]
        port = used if setting == "listeners" else 0
        metrics = ("--metrics-port", str(used)) if setting == "--metrics-port" else ()
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{port}"

        code, output = run("--standalone", *metrics, "--override", f"log.dirs={tmp_path}", "--override", listeners)

    assert code == 1
    message = f"Address already in use. End the process that uses the port, or change {setting}."
    assert f"steward broker: Failed to listen on 127.0.0.1:{used}: {message}" in output


def test_a_listener_on_a_host_that_is_unknown_is_exit_code_1(tmp_path: Path) -> None:
    """The message has the address and the setting. The name is reserved (RFC 2606)."""
    code, output = run(
        "--standalone", "--override", f"log.dirs={tmp_path}", "--override", "listeners=PLAINTEXT://host.invalid:9092"
    )

    assert code == 1
    assert "Failed to listen on host.invalid:9092: " in output
    assert "change listeners." in output


def test_a_file_in_place_of_the_data_folder_is_exit_code_1(tmp_path: Path) -> None:
    """The message has the path and the setting."""
    (tmp_path / "data").write_text("")

    code, output = run("--standalone", "--override", f"log.dirs={tmp_path / 'data'}")

    assert code == 1
    assert f"Failed to read {tmp_path}/data/standalone.json: Not a directory. Check log.dirs" in output
