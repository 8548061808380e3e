"""Metrics of brokers: the agent of the image of Kafka in a real broker."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from lab.downloads.kafka_image import IMAGE, agent_jar, class_path
from lab.peers.cluster import kafka_cluster
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.folder import lab_folder
from lab.processes.http_get import http_get
from lab.processes.ports import free_port, release_port
from lab.processes.waiting import wait_until
from tests.integration.conftest import PATIENCE_S

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"

pytestmark = pytest.mark.kafka


def documented_metrics(page: str) -> set[str]:
    """Return the names of the metrics of brokers in the table of docs/metrics.md."""
    section = page.partition("# Metrics of the brokers\n")[2].partition("\n# ")[0]
    return set(re.findall(r"`((?:kafka|jvm)_\w+)`", section))


def is_answered(port: int, path: str) -> bool:
    """Return whether one GET of a path has an answer."""
    return http_get(port, path) is not None


@pytest.mark.shows("F47")
def test_a_broker_exports_the_documented_metrics(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """All of them from the start, so that a query has a value before anything has failed. The probes are on the same port."""
    port = free_port()
    with (
        lab_folder(None) as folder,
        kafka_cluster((1,), start=False, folder=folder, zookeeper=zookeeper, chroot=chroot) as cluster,
    ):
        command = cluster.broker(1).process.command
        command[command.index("-cp") + 1] = class_path()
        command.insert(1, f"-javaagent:{agent_jar()}={port}:{IMAGE / 'metrics.yaml'}")
        cluster.start_brokers()
        for path in ("/readyz", "/metrics"):
            # The agent loads its classes for the first answer, which takes longer than a GET waits on a busy machine.
            wait_until(partial(is_answered, port, path), timeout_s=PATIENCE_S, what=f"an answer to {path}")
        ready, scraped, again = (http_get(port, path) for path in ("/readyz", "/metrics", "/metrics"))
    release_port(port)

    assert ready is not None
    assert ready.status == 200
    assert scraped is not None
    assert again is not None
    lines = again.body.decode().splitlines()
    found = {re.split("[{ ]", line)[0] for line in lines if not line.startswith("#")}
    documented = documented_metrics(PAGE.read_text("utf-8"))
    assert documented - found == set()
    assert {name for name in found if re.match("kafka|jvm", name)} - documented == set()
    assert [line for line in lines if "topic=" in line] == []
