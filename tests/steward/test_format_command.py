"""`steward format`: what it writes, what it refuses, and that an interrupted run is repeated."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller_core.shell.quorum import format_files
from kafka_log.errors import LogWriteError
from kafka_log.files.durable import replace_file
from kafka_log.files.lock import FolderLock
from kafka_log.files.snapshots import write_snapshot
from kafka_log.files.text_files import write_meta_properties
from steward.main import app
from tests.controller_core.shell.quorum.properties import DYNAMIC, STATIC

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
ROOT_CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
OK, FAILED = 0, 1


class Controller:
    """A properties file and its directories."""

    def __init__(self, folder: Path, values: dict[str, str]) -> None:
        self.first, self.second = folder / "one", folder / "two"
        self._path = folder / "controller.properties"
        own = values | {"log.dirs": f"{self.first},{self.second}"}
        self._path.write_text("".join(f"{name}={value}\n" for name, value in own.items()))

    def format(self, *arguments: str, cluster_id: str = CLUSTER_ID) -> tuple[int, str]:
        """Run the command and return its exit code and output."""
        command = ["format", "--config", str(self._path), "--cluster-id", cluster_id, *arguments]
        result = CliRunner().invoke(app, command)
        return result.exit_code, result.output

    def refusal(self, *arguments: str, cluster_id: str = CLUSTER_ID) -> str:
        """Run the command, which must fail, and return its message."""
        code, output = self.format(*arguments, cluster_id=cluster_id)
        assert code == FAILED
        return output.removeprefix("steward format: ").removesuffix("\n")

    def files(self) -> list[str]:
        """Return the names of all files in the directories."""
        folder = self.first.parent
        return sorted(str(path.relative_to(folder)) for path in folder.glob("*/**/*") if path.is_file())


@pytest.fixture
def dynamic(tmp_path: Path) -> Controller:
    """A controller whose voters are in the log."""
    return Controller(tmp_path, DYNAMIC)


@pytest.fixture
def static(tmp_path: Path) -> Controller:
    """A controller with static voters."""
    return Controller(tmp_path, STATIC)


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("{file}/data", "Failed to read {file}/data/meta.properties: Not a directory."),
        ("/proc/steward", "Failed to create folder /proc/steward: No such file or directory."),
    ],
    ids=["below a file", "where no folder can be"],
)
def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, folder: str, reason: str) -> None:
    """FormatterTest.testFormatterFailsOnUnwritableDirectory; root may write to read-only folders."""
    file = tmp_path / "file"
    file.touch()
    config = tmp_path / "controller.properties"
    values = {**STATIC, "log.dirs": folder.format(file=file)}
    config.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    result = CliRunner().invoke(app, ["format", "--config", str(config), "--cluster-id", CLUSTER_ID])

    assert (result.exit_code, result.output) == (FAILED, f"steward format: {reason.format(file=file)}\n")


BASE_FILES = ["one/bootstrap.checkpoint", "one/meta.properties", "two/bootstrap.checkpoint", "two/meta.properties"]


def test_a_new_quorum_has_a_snapshot_with_its_voters_in_the_metadata_directory(dynamic: Controller) -> None:
    """kraft.version 1: the voters are records."""
    code, output = dynamic.format("--standalone")

    assert (code, dynamic.files()) == (OK, [f"one/{ROOT_CHECKPOINT}", *BASE_FILES])
    assert output.splitlines()[0].startswith(
        f"Formatted dynamic metadata directory {dynamic.first} with metadata.version 4.3-IV0, directory.id "
    )


def test_static_voters_and_a_controller_that_joins_have_no_such_snapshot(static: Controller) -> None:
    """The voters are in the settings, or in the log of the quorum."""
    assert (static.format()[0], static.files()) == (OK, BASE_FILES)


def test_drawn_ids_name_the_directories_of_initial_controllers(dynamic: Controller) -> None:
    """They never begin with a dash, which would be an option."""
    ids = [CliRunner().invoke(app, ["random-uuid"]).output.strip() for _ in range(2)]
    voters = ",".join(f"{node_id}@127.0.0.1:9093:{drawn}" for node_id, drawn in enumerate(ids, start=1))

    assert dynamic.format("-I", voters)[0] == OK
    assert f"directory.id={ids[0]}\n" in (dynamic.first / "meta.properties").read_text()


def test_the_voters_of_a_dynamic_quorum_must_be_named_in_one_way(static: Controller) -> None:
    """No quorum is made by accident; both controllers have the same directories."""
    assert static.refusal("--standalone").startswith(
        "You cannot set controller.quorum.voters and format with --standalone"
    )
    dynamic = Controller(static.first.parent, DYNAMIC)
    assert dynamic.refusal().startswith("Because controller.quorum.voters is not set on this controller, use one of")
    assert dynamic.refusal("-s", "-N").startswith("Use only one of --standalone, --initial-controllers and")
    assert dynamic.files() == []


def test_a_formatted_directory_is_refused_or_skipped(dynamic: Controller) -> None:
    """--ignore-formatted formats the others, and changes none."""
    dynamic.format("--standalone")
    before = (dynamic.first / "meta.properties").read_bytes()
    (dynamic.second / "meta.properties").unlink()

    assert dynamic.refusal("--standalone") == (
        f"Log directory {dynamic.first} is already formatted. Use --ignore-formatted to ignore this directory and format the "
        "others."
    )
    assert dynamic.format("--standalone", "-g")[0] == OK
    assert (dynamic.first / "meta.properties").read_bytes() == before
    assert dynamic.format("--standalone", "-g") == (OK, "All of the log directories are already formatted.\n")


def test_a_directory_of_another_cluster_or_node_is_refused(dynamic: Controller) -> None:
    """Also where formatted directories are skipped."""
    dynamic.format("--standalone")
    meta = dynamic.second / "meta.properties"

    assert dynamic.refusal("-s", "-g", cluster_id="other").startswith(f"Invalid cluster.id in {dynamic.first}/")
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    assert dynamic.refusal("-s", "-g").startswith(f"Invalid node.id in {meta}: expected 1, but read 2.")


def test_a_copied_directory_is_refused(dynamic: Controller) -> None:
    """Two directories with one id would be one for the quorum."""
    dynamic.format("--standalone")
    (dynamic.second / "meta.properties").write_bytes((dynamic.first / "meta.properties").read_bytes())

    assert "have the same directory.id" in dynamic.refusal("-s", "-g")


def test_data_without_meta_properties_is_refused(dynamic: Controller) -> None:
    """A voter that forgot its vote may vote twice in one epoch."""
    dynamic.format("--standalone")
    (dynamic.first / "meta.properties").unlink()
    (dynamic.first / "__cluster_metadata-0" / "quorum-state").write_text("{}")

    assert dynamic.refusal("-s", "-g").startswith(
        f"Log directory {dynamic.first} has no meta.properties but has data in __cluster_metadata-0: restore meta.properties"
    )


def test_a_directory_that_a_process_uses_is_refused(dynamic: Controller) -> None:
    """A process that lost the meta.properties of a second directory still runs with it; no other lock file is made."""
    dynamic.first.mkdir()
    with FolderLock(dynamic.first):
        assert dynamic.refusal("-s").startswith(f"Failed to acquire the lock on {dynamic.first}/.lock: another process")
        assert dynamic.files() == ["one/.lock"]

    assert dynamic.format("-s")[0] == OK
    assert "two/.lock" not in dynamic.files()


@pytest.mark.parametrize("number", range(5))
def test_a_run_that_ends_in_the_middle_is_repeated(
    dynamic: Controller, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """meta.properties is the last file, so the directory is not formatted before."""
    written = 0

    def failing(write: Callable[..., object], temporary: str) -> Callable[..., object]:
        def fail_later(path: Path, *arguments: object) -> object:
            nonlocal written
            if written == number:
                Path(temporary.format(path)).write_bytes(b"cut")
                raise LogWriteError(f"Failed to write {path}: No space left on device")
            written += 1
            return write(path, *arguments)

        return fail_later

    part = "{}/00000000000000000000-0000000000-a1b2.checkpoint.part"
    with monkeypatch.context() as patch:
        patch.setattr(format_files, "replace_file", failing(replace_file, "{}.tmp"))
        patch.setattr(format_files, "write_snapshot", failing(write_snapshot, part))
        identity = failing(write_meta_properties, "{}/meta.properties.tmp")
        patch.setattr(format_files, "write_meta_properties", identity)
        message = dynamic.refusal("--standalone")
    done = dynamic.format("--standalone", "-g")

    assert message.endswith(": No space left on device.")
    assert (done[0], dynamic.files()) == (OK, [f"one/{ROOT_CHECKPOINT}", *BASE_FILES])


def test_a_malformed_or_unreadable_meta_properties_is_refused_by_its_name(dynamic: Controller) -> None:
    """It is not overwritten."""
    dynamic.first.mkdir()
    meta = dynamic.first / "meta.properties"
    refused = {}
    for text in (
        "version=2\n",
        "version=1\nnode.id=1\n",
        "version=1\ncluster.id=a\n",
        "version=1\ncluster.id=a\nnode.id=x\n",
        "version=1\ncluster.id=a\nnode.id=1\ndirectory.id=b\n",
    ):
        meta.write_text(text)
        refused[text] = dynamic.refusal("-s", "-g").removeprefix(f"Failed to read {meta}: ")

    assert list(refused.values()) == [
        "version 2 is not supported, only 0 and 1.",
        "cluster.id is missing.",
        "node.id is missing.",
        "node.id 'x' is not a number.",
        "directory.id 'b' is not an id of 22 characters in URL-safe Base64.",
    ]


def test_a_cluster_id_in_another_script_is_refused(dynamic: Controller) -> None:
    """Kafka would read another id from the file than it wrote."""
    assert dynamic.refusal("-s", cluster_id="größe").startswith("The cluster id must be ASCII")


def test_settings_without_effect_are_reported(tmp_path: Path) -> None:
    """One line for each unknown name, and one for those that only Kafka uses."""
    controller = Controller(tmp_path, STATIC | {"controler.quorum": "1", "num.io.threads": "2"})

    assert [line for line in controller.format()[1].splitlines() if "Ignoring" in line] == [
        "steward format: Ignoring the unknown setting controler.quorum.",
        "steward format: Ignoring settings of Kafka that Steward does not use: num.io.threads.",
    ]


def test_a_password_is_not_in_the_messages(dynamic: Controller) -> None:
    """Whatever else is wrong with the argument."""
    for argument in (
        "SCRAM-SHA-256=name=alice,password=hidden]",
        "SCRAM-SHA-256=[name=alice,hidden]",
        "SCRAM-SHA-256=[name=alice,password=hidden,x=y]",
        "hidden",
    ):
        assert "hidden" not in dynamic.refusal("-s", "-S", argument).replace("argument 'hidden'", "")
