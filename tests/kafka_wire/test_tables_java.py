"""The committed tables match Kafka's jars: extracting them again changes nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_wire.schema import RELEASES
from lab.downloads.jars import java, kafka_jars

pytestmark = pytest.mark.java

ROOT = Path(__file__).parents[2]


def test_extracting_the_schemas_again_changes_nothing(tmp_path: Path) -> None:
    """As `make schemas` does, on any machine."""
    pairs = [f"{kafka}={kafka_jars(kafka)}" for kafka in RELEASES]
    subprocess.run([sys.executable, ROOT / "tools" / "extract_schemas.py", "--into", tmp_path, *pairs], check=True)

    for kafka in RELEASES:
        name = f"messages-{kafka}.jsonl"
        assert (ROOT / "kafka_wire" / "tables" / name).read_text() == (tmp_path / name).read_text()


def test_extracting_the_error_codes_again_changes_nothing(tmp_path: Path) -> None:
    """The newest release's codes include those of the older one."""
    jars = kafka_jars(RELEASES[0])
    command: list[str | Path] = [
        sys.executable,
        ROOT / "tools" / "extract_errors.py",
        "--java",
        java(),
        "--into",
        tmp_path,
        jars,
    ]
    subprocess.run(command, check=True)

    assert (ROOT / "kafka_wire" / "tables" / "errors.jsonl").read_text() == (tmp_path / "errors.jsonl").read_text()
