"""`steward sampler`: its settings, errors for wrong options, and exit codes."""

import base64
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from kafka_wire.net.client import BearerCredentials
from lab.peers.steward import ROOT
from lab.processes.http_get import http_get
from lab.processes.ports import free_port, release_port
from lab.processes.waiting import wait_until
from steward.main import app
from steward.options.sampler import (
    KeyCountOptions,
    PrometheusOptions,
    Protocol,
    SamplerServerOptions,
    SamplingOptions,
    SinkOptions,
)
from steward.options.security import BrokerSecurityOptions, MskLoginOptions
from steward.sampler_command import run_sampler, sampler_config

PATIENCE_S = 120.0
"""For actions that take one or two seconds: a process starts slowly on a busy machine."""
UNREACHABLE = "127.0.0.1:1"
"""No server listens on this port."""
MSK = ("--bootstrap-server=a:1", "--security-protocol=SASL_SSL")


def error_of(*arguments: str) -> str:
    """The error for wrong options, in one line."""
    done = CliRunner().invoke(app, ["sampler", *arguments], env={"COLUMNS": "300", "TERM": "dumb"})
    assert done.exit_code == 2, done.output
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--bootstrap-server'"),
        (["--bootstrap-server=broker"], "the bootstrap server 'broker' is not HOST:PORT"),
        (["--bootstrap-server=a:1", "--interval-s=4"], "an interval of 4 s; 5 to 3600 are allowed"),
        (["--bootstrap-server=a:1", "--topic=a b"], "'a b' is not a valid topic name"),
        (["--bootstrap-server=a:1", "--topic-partitions=0"], "0 partitions"),
        (["--bootstrap-server=a:1", "--topic-retention-hours=0"], "must be positive"),
        (["--bootstrap-server=a:1", "--security-protocol=SASL_SSL"], "SASL_SSL needs a SASL mechanism"),
        (["--bootstrap-server=a:1", "--msk-region=eu-central-1"], "--msk-region needs --security-protocol SASL_SSL"),
        (["--bootstrap-server=a:1", "--msk-role-arn=arn:aws:iam::1:role/r"], "--msk-role-arn needs --msk-region"),
        ([*MSK, "--msk-region=cn-north-1"], "cn-north-1 is a region of China, whose MSK clusters are not supported"),
        ([*MSK, "--msk-region=Frankfurt"], "'Frankfurt' is not an AWS region"),
        ([*MSK, "--msk-region=us-east-1", "--broker-sasl-mechanism=PLAIN"], "omit --broker-sasl-mechanism"),
        (["--bootstrap-server=a:1", "--broker-sasl-mechanism=MAGIC"], "the SASL mechanism MAGIC is not one of"),
        (["--bootstrap-server=a:1", "--broker-tls-ca=none.pem"], "the authorities in none.pem cannot be read"),
        (["--bootstrap-server=a:1", "--key-topic=orders"], "--once, --key-topic and --key-sketches together"),
        (["--bootstrap-server=a:1", "--prometheus-url=https://p"], "--once, --prometheus-url and --prometheus-rates"),
        (
            ["--bootstrap-server=a:1", "--once", "--prometheus-url=p", "--prometheus-rates=r"],
            "not a valid URL of a Prometheus",
        ),
        (["--bootstrap-server=a:1", "--parquet-retention-days=9"], "--parquet-retention-days needs --parquet"),
        (["--bootstrap-server=a:1", "--once", "--parquet=p", "--parquet-retention-days=9"], "omit --once"),
        (["--bootstrap-server=a:1", "--parquet=p", "--parquet-retention-days=0"], "it must be 1 to 36500"),
        (["--bootstrap-server=a:1", "--broker-tls-key=key.pem"], "the key key.pem is given without its certificate"),
    ],
)
def test_wrong_options_are_reported(arguments: list[str], message: str) -> None:
    """Before any connection is opened."""
    assert message in error_of(*arguments)


def test_world_readable_password_file_is_rejected_and_not_shown(tmp_path: Path) -> None:
    """As for the other commands."""
    path = tmp_path / "password"
    path.write_text("do-not-show\n")
    path.chmod(0o644)
    login = ["--broker-sasl-mechanism=PLAIN", "--broker-sasl-username=sampler", f"--broker-sasl-password-file={path}"]
    error = error_of("--bootstrap-server=a:1", "--security-protocol=SASL_SSL", *login)

    assert "has the mode 644" in error
    assert "do-not-show" not in error


def test_security_protocol_selects_tls_and_sasl(tmp_path: Path) -> None:
    """TLS verifies the host name; the representation of the settings does not contain the password."""
    path = tmp_path / "password"
    path.write_text("do-not-show\n")
    path.chmod(0o600)
    config = sampler_config(
        SamplingOptions(bootstrap_server=["a:1"], security_protocol=Protocol.SASL_SSL),
        SinkOptions(),
        SamplerServerOptions(),
        BrokerSecurityOptions(
            broker_sasl_mechanism="PLAIN", broker_sasl_username="sampler", broker_sasl_password_file=path
        ),
        KeyCountOptions(),
        PrometheusOptions(),
    )

    assert config.settings.node.ssl is not None
    assert config.settings.node.ssl.check_hostname
    assert config.settings.node.sasl is not None
    assert "do-not-show" not in repr(config)


@pytest.mark.shows("F74")
async def test_the_sampler_logs_in_at_msk_by_tokens_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the region and over TLS; `tests/kafka_node/security/test_msk_iam.py` checks signatures."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-show")
    config = sampler_config(
        SamplingOptions(bootstrap_server=["a:1"], security_protocol=Protocol.SASL_SSL),
        SinkOptions(),
        SamplerServerOptions(),
        BrokerSecurityOptions(),
        KeyCountOptions(),
        PrometheusOptions(),
        MskLoginOptions(msk_region="eu-central-1"),
    )
    login = config.settings.node.sasl

    assert isinstance(login, BearerCredentials)
    token = await login.token()
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert url.netloc == "kafka.eu-central-1.amazonaws.com"
    assert parse_qs(url.query)["X-Amz-Credential"][0].startswith("AKID/")
    assert config.settings.node.ssl is not None
    assert "do-not-show" not in repr(config)


def test_failed_sample_is_reported_with_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    """`--once` is for scripts."""
    config = sampler_config(
        SamplingOptions(bootstrap_server=[UNREACHABLE], once=True),
        SinkOptions(),
        SamplerServerOptions(),
        BrokerSecurityOptions(),
        KeyCountOptions(),
        PrometheusOptions(),
    )

    assert run_sampler(config) == 1
    assert (
        "steward sampler: no broker returned the cluster's metadata: 127.0.0.1:1 cannot be" in capsys.readouterr().err
    )


@pytest.mark.slow
def test_signal_stops_the_sampler(tmp_path: Path) -> None:
    """Kubernetes sends SIGTERM, also while no broker answers; the sampler is then live and not ready, and keeps its folder up."""
    expired = tmp_path / "date=2020-01-01"
    expired.mkdir()
    (expired / "sample-cluster-1577836800000.parquet").write_bytes(b"")
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "steward",
        "sampler",
        f"--bootstrap-server={UNREACHABLE}",
        f"--metrics-port={port}",
        f"--parquet={tmp_path}",
    ]
    retention = {"STEWARD_SAMPLES_PARQUET_RETENTION_DAYS": "30"}
    environment = {**os.environ, **retention, "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: http_get(port, "/healthz") is not None, timeout_s=PATIENCE_S, what="its probes answer")
        ready = http_get(port, "/readyz")
        wait_until(lambda: not expired.exists(), timeout_s=PATIENCE_S, what="the expired day is deleted")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        release_port(port)

    assert ready is not None
    assert ready.status == 503
    assert process.returncode == 0, stderr
    assert "Sampler stopped" in stderr
