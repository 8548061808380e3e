"""`steward plan`: the digest of a plan, and ConfigMaps that contain it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from kafka_operator.decide.plans.plan_document import digest_of, read_config_maps
from steward.main import app
from tests.kafka_operator.makers import assignments
from tests.kafka_operator.plans import document

PLAN = assignments(p0=(2, 3, 4), p1=(3, 4, 2))
WRONG = 2


def test_digest_is_printed_for_a_file_and_for_stdin(tmp_path: Path) -> None:
    """The value of spec.planFrom.digest."""
    path = tmp_path / "plan.json"
    path.write_text(document(PLAN), encoding="utf-8")

    assert CliRunner().invoke(app, ["plan", "digest", str(path)]).stdout == f"{digest_of(PLAN)}\n"
    assert CliRunner().invoke(app, ["plan", "digest", "-"], input=document(PLAN)).stdout == f"{digest_of(PLAN)}\n"


def test_config_maps_contain_the_plan_and_stderr_has_the_plan_from_lines(tmp_path: Path) -> None:
    """For kubectl apply --server-side -f -, and for the Reassignment."""
    path = tmp_path / "plan.json"
    path.write_text(document(PLAN), encoding="utf-8")

    result = CliRunner().invoke(app, ["plan", "configmaps", str(path), "--name", "move", "--namespace", "shop"])

    (item,) = json.loads(result.stdout)["items"]
    assert item["metadata"] == {"name": "move-0", "namespace": "shop"}
    assert read_config_maps([item]).plan == PLAN
    assert result.stderr == f"planFrom:\n  configMaps: [move-0]\n  digest: {digest_of(PLAN)}\n"


def test_missing_or_invalid_plan_file_is_an_error(tmp_path: Path) -> None:
    """A file that does not exist, and one that is not a plan."""
    path = tmp_path / "plan.json"
    missing = CliRunner().invoke(app, ["plan", "digest", str(path)])
    path.write_text("{}", encoding="utf-8")
    garbage = CliRunner().invoke(app, ["plan", "digest", str(path)])

    assert (missing.exit_code, garbage.exit_code) == (WRONG, WRONG)
    assert "cannot be read" in missing.output
    assert "partitions" in garbage.output
