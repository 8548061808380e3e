"""`steward sampler`: what its options become, what is refused in words, and what the exit code says."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.http_get import http_get
from lab.ports import free_port, release_port
from lab.steward import ROOT
from lab.waiting import wait_until
from steward.main import app
from steward.options.sampler import (
    KeepOptions,
    KeyOptions,
    LookOptions,
    PrometheusOptions,
    Protocol,
    SamplerPlaceOptions,
)
from steward.options.security import BrokerSecurityOptions
from steward.sampler_command import run_sampler, sampler_plan

PATIENCE_S = 120.0
"""For what takes a second or two: a process starts slowly on a machine that is busy."""
NOBODY = "127.0.0.1:1"
"""No broker listens there, on no machine."""


def refusal(*arguments: str) -> str:
    """What the command line says of options that cannot be, in one line."""
    done = CliRunner().invoke(app, ["sampler", *arguments], env={"COLUMNS": "300", "TERM": "dumb"})
    assert done.exit_code == 2, done.output
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing option '--bootstrap-server'"),
        (["--bootstrap-server=broker"], "the bootstrap server 'broker' is not HOST:PORT"),
        (["--bootstrap-server=a:1", "--interval-s=4"], "an interval of 4 s; 5 to 3600 are taken"),
        (["--bootstrap-server=a:1", "--topic=a b"], "'a b' is no name for a topic"),
        (["--bootstrap-server=a:1", "--topic-partitions=0"], "0 partitions"),
        (["--bootstrap-server=a:1", "--topic-retention-hours=0"], "would keep nothing"),
        (["--bootstrap-server=a:1", "--security-protocol=SASL_SSL"], "SASL_SSL needs a SASL mechanism"),
        (["--bootstrap-server=a:1", "--broker-sasl-mechanism=MAGIC"], "the SASL mechanism MAGIC is none of"),
        (["--bootstrap-server=a:1", "--broker-tls-ca=none.pem"], "the authorities in none.pem cannot be read"),
        (["--bootstrap-server=a:1", "--key-topic=orders"], "--once, --key-topic and --key-sketches together"),
        (["--bootstrap-server=a:1", "--prometheus-url=https://p"], "--once, --prometheus-url and --prometheus-rates"),
        (
            ["--bootstrap-server=a:1", "--once", "--prometheus-url=p", "--prometheus-rates=r"],
            "no address of a Prometheus",
        ),
        (["--bootstrap-server=a:1", "--broker-tls-key=key.pem"], "the key key.pem is given without its certificate"),
    ],
)
def test_options_that_cannot_be_are_refused_in_words(arguments: list[str], words: str) -> None:
    """Before anything is connected to."""
    assert words in refusal(*arguments)


def test_a_password_file_that_others_may_read_is_refused_and_not_shown(tmp_path: Path) -> None:
    """As with the other commands."""
    path = tmp_path / "password"
    path.write_text("do-not-show\n")
    path.chmod(0o644)
    login = ["--broker-sasl-mechanism=PLAIN", "--broker-sasl-username=sampler", f"--broker-sasl-password-file={path}"]
    told = refusal("--bootstrap-server=a:1", "--security-protocol=SASL_SSL", *login)

    assert "has the mode 644" in told
    assert "do-not-show" not in told


def test_tls_and_sasl_are_those_of_the_protocol(tmp_path: Path) -> None:
    """TLS verifies; a password stays out of what a settings value shows."""
    path = tmp_path / "password"
    path.write_text("do-not-show\n")
    path.chmod(0o600)
    plan = sampler_plan(
        LookOptions(bootstrap_server=["a:1"], security_protocol=Protocol.SASL_SSL),
        KeepOptions(),
        SamplerPlaceOptions(),
        BrokerSecurityOptions(
            broker_sasl_mechanism="PLAIN", broker_sasl_username="sampler", broker_sasl_password_file=path
        ),
        KeyOptions(),
        PrometheusOptions(),
    )

    assert plan.settings.node.ssl is not None
    assert plan.settings.node.ssl.check_hostname
    assert plan.settings.node.sasl is not None
    assert "do-not-show" not in repr(plan)


def test_a_look_that_fails_is_told_and_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """`--once` is for scripts."""
    plan = sampler_plan(
        LookOptions(bootstrap_server=[NOBODY], once=True),
        KeepOptions(),
        SamplerPlaceOptions(),
        BrokerSecurityOptions(),
        KeyOptions(),
        PrometheusOptions(),
    )

    assert run_sampler(plan) == 1
    assert "steward sampler: no broker tells the cluster's metadata: 127.0.0.1:1 cannot be" in capsys.readouterr().err


@pytest.mark.timeout(300)
def test_a_signal_ends_it_cleanly() -> None:
    """SIGTERM is how a pod ends, also while no broker answers; it is alive all the while, and not ready."""
    port = free_port()
    command = [sys.executable, "-m", "steward", "sampler", f"--bootstrap-server={NOBODY}", f"--metrics-port={port}"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: http_get(port, "/healthz") is not None, timeout_s=PATIENCE_S, what="its probes answer")
        ready = http_get(port, "/readyz")
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        release_port(port)

    assert ready is not None
    assert ready.status == 503
    assert process.returncode == 0, told
    assert "the sampler has ended" in told
