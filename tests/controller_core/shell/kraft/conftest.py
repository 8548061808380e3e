"""Controllers of KRaft mode on a quorum in memory.

Committed records are applied in one piece: otherwise a test on a busy machine sees a part of them.
"""

import asyncio

import pytest

from controller_core.shell.kraft import follower
from tests.controller_core.shell.kraft.memory_quorum import Member, SharedLog


@pytest.fixture(autouse=True)
def one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice last as long as there is work; the test of slices sets the time that the product has."""
    monkeypatch.setattr(follower, "SLICE_S", 3600.0)


@pytest.fixture
async def log() -> SharedLog:
    """A log without a leader."""
    return SharedLog()


@pytest.fixture
async def active(log: SharedLog) -> Member:
    """The active controller of a new cluster, without brokers."""
    member = log.add(101)
    log.elect(101)
    await asyncio.sleep(0)
    assert member.controller.is_active
    return member
