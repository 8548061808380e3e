"""The documented command for a large plan: `steward plan configmaps` piped to kubectl, on a real API server."""

import random
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_operator.decide.plans.plan_document import digest_of
from kafka_operator.resources.reassignment import Assignment, Partition
from lab.peers.kubernetes import KubernetesApi
from lab.peers.steward import ROOT
from steward.main import app
from tests.kafka_operator.plans import document

pytestmark = pytest.mark.kubernetes

DOCUMENTED = re.compile(r"^ {4}steward (plan configmaps .*) \| kubectl (.*)$", re.MULTILINE)
MAX_ANNOTATIONS_BYTES = 262_144
"""Limit per object; kubectl stores a copy of an applied object there (apimachinery's TotalAnnotationSizeLimitB)."""

PARTITIONS = 80_000
"""So many that a packed ConfigMap of them exceeds the limit."""


def large_plan() -> list[Assignment]:
    """A plan that compresses badly: its brokers are random."""
    rng = random.Random(1)
    return [
        Assignment(Partition(f"orders-{number // 100:03}", number % 100), tuple(rng.sample(range(100), 3)))
        for number in range(PARTITIONS)
    ]


def test_the_documented_command_takes_a_large_plan(kubernetes_api: KubernetesApi, tmp_path: Path) -> None:
    """docs/reassignments.md; a plain `kubectl apply` fails: metadata.annotations: Too long."""
    plan, path = large_plan(), tmp_path / "plan.json"
    path.write_text(document(plan), encoding="utf-8")
    text = (ROOT / "docs" / "reassignments.md").read_text(encoding="utf-8")
    found = DOCUMENTED.search(text)
    assert found is not None
    steward, kubectl = map(shlex.split, found.groups())
    kubernetes_api.kubectl("create", "namespace", steward[steward.index("--namespace") + 1])

    made = CliRunner().invoke(app, [str(path) if word == "plan.json" else word for word in steward])
    done = kubernetes_api.kubectl(*kubectl, stdin=made.stdout)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(made.stdout) > 2 * MAX_ANNOTATIONS_BYTES
    assert digest_of(plan) in made.stderr
