"""`steward plan`: the digest of a plan, and ConfigMaps that hold it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from kafka_operator.decide.plan_document import digest_of, read_config_maps
from steward.main import app
from tests.kafka_operator.makers import assignments
from tests.kafka_operator.plans import document

PLAN = assignments(p0=(2, 3, 4), p1=(3, 4, 2))
WRONG = 2


def test_a_digest_is_printed_for_a_file_and_for_the_input(tmp_path: Path) -> None:
    """What spec.planFrom.digest has to say."""
    path = tmp_path / "plan.json"
    path.write_text(document(PLAN), encoding="utf-8")

    assert CliRunner().invoke(app, ["plan", "digest", str(path)]).stdout == f"{digest_of(PLAN)}\n"
    assert CliRunner().invoke(app, ["plan", "digest", "-"], input=document(PLAN)).stdout == f"{digest_of(PLAN)}\n"


def test_config_maps_hold_the_plan_and_the_lines_that_name_them_are_told(tmp_path: Path) -> None:
    """For kubectl apply --server-side -f -, and for the Reassignment."""
    path = tmp_path / "plan.json"
    path.write_text(document(PLAN), encoding="utf-8")

    result = CliRunner().invoke(app, ["plan", "configmaps", str(path), "--name", "move", "--namespace", "shop"])

    (item,) = json.loads(result.stdout)["items"]
    assert item["metadata"] == {"name": "move-0", "namespace": "shop"}
    assert read_config_maps([item]).plan == PLAN
    assert result.stderr == f"planFrom:\n  configMaps: [move-0]\n  digest: {digest_of(PLAN)}\n"


def test_what_is_no_plan_is_told_in_words(tmp_path: Path) -> None:
    """A file that is not there, and one that is something else."""
    path = tmp_path / "plan.json"
    missing = CliRunner().invoke(app, ["plan", "digest", str(path)])
    path.write_text("{}", encoding="utf-8")
    garbage = CliRunner().invoke(app, ["plan", "digest", str(path)])

    assert (missing.exit_code, garbage.exit_code) == (WRONG, WRONG)
    assert "cannot be read" in missing.output
    assert "partitions" in garbage.output
