"""Reports of a running node on other nodes that break the protocol, or that reject it."""

import logging
from pathlib import Path

import pytest

from lab.processes.ports import free_port
from tests.controller_core.shell.quorum.members import Member
from tests.waiting import until

OTHER_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


async def test_a_node_that_is_rejected_at_each_retry_logs_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two nodes of different clusters that list each other: INCONSISTENT_CLUSTER_ID, which only a changed setting ends."""
    ports = {1: free_port(), 2: free_port()}
    first, second = (Member(tmp_path, node_id, ports) for node_id in ports)
    first.format()
    second.format(OTHER_CLUSTER)
    with caplog.at_level(logging.ERROR, "controller_core.shell.quorum.violation_log"):
        for member in (first, second):
            member.start()
        await until(lambda: violations(first) >= 3)
        for member in (first, second):
            await member.crash()

    # The first rejected request is logged: a Fetch to the bootstrap server, or a Vote where the other node has started late.
    names = (f"bootstrap server 127.0.0.1:{ports[2]} ", "node 2 ")
    by_first = [record for record in caplog.records if record.__dict__["reason"].startswith(names)]
    assert [(record.levelname, record.__dict__["skipped"]) for record in by_first] == [("ERROR", 0)]
    assert "INCONSISTENT_CLUSTER_ID" in by_first[0].__dict__["reason"]


def violations(member: Member) -> int:
    """Return how often other nodes rejected a node."""
    driver = None if member.process is None else member.process.driver
    return 0 if driver is None else driver.violations
