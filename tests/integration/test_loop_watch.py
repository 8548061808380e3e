"""A controller whose event loop hangs gives `/controller` up, on a real ZooKeeper; another process takes over.

kazoo keeps pinging from its own thread, so that the session would never end by itself.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller_core.shell.process import ControllerProcess
from controller_core.shell.settings import ControllerSettings, Listener
from kafka_zookeeper.errors import SessionLostError
from kafka_zookeeper.session import SessionState, ZooKeeperSession
from kafka_zookeeper.settings import ZooKeeperSettings
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.loop_thread import LoopThread
from lab.processes.waiting import wait_until
from tests.waiting import until

pytestmark = pytest.mark.timeout(240)

SESSION_TIMEOUT_MS = 4_000
PATIENCE_S = 60.0
BLOCKED, OTHER = 1000, 999
TASKS: set["asyncio.Task[None]"] = set()
"""References to running tasks, which would be collected otherwise."""


def controller(connect: str, controller_id: int) -> ControllerProcess:
    """Create a controller in the running loop."""
    listener = Listener("INTERNAL", "127.0.0.1", 0, "127.0.0.1", 0)
    settings = ControllerSettings(
        connect, controller_id, (listener,), "INTERNAL", session_timeout_ms=SESSION_TIMEOUT_MS, metrics_port=0
    )
    return ControllerProcess(settings)


@asynccontextmanager
async def running(process: ControllerProcess) -> AsyncIterator[ControllerProcess]:
    """Run a controller for the block."""
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        process.stop()
        await task


@pytest.mark.shows("C6")
async def test_a_controller_that_hangs_is_followed_by_another(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """C6: it is active, hangs until the other one is active, and is a standby when it runs again."""
    connect = zookeeper.connect(chroot)
    others = LoopThread("the other controller")
    others.start()
    try:
        async with running(controller(connect, BLOCKED)) as blocked:
            await until(lambda: blocked.active is not None)
            other = others.wait(_started(connect, OTHER))
            # This blocks the loop of the first controller, like a handler that never ends.
            wait_until(lambda: other.active is not None, timeout_s=PATIENCE_S, what="the other controller active")
            time.sleep(1)  # noqa: ASYNC251 - still blocked
            assert blocked.active is not None, "the blocked loop has not run yet"
            await until(lambda: blocked.active is None)
            await until(lambda: blocked._sessions.connected)
            assert other.active is not None
            assert blocked.active is None
            assert blocked._loop_watch.given_up == 1
            assert await active_controller(connect) == OTHER
            others.call(other.stop)
            await until(lambda: blocked.active is not None)
    finally:
        others.close()


async def _started(connect: str, controller_id: int) -> ControllerProcess:
    """Start a controller in the running loop, which ends it."""
    process = controller(connect, controller_id)
    TASKS.add(asyncio.create_task(process.run()))
    return process


async def active_controller(connect: str) -> int:
    """Id of the active controller, from ZooKeeper."""
    session = await ZooKeeperSession.connect(ZooKeeperSettings(connect, 10_000))
    try:
        node = await session.get("/controller")
        assert node is not None
        assert node.data is not None
        return int(json.loads(node.data)["brokerid"])
    finally:
        await session.close()


@pytest.mark.parametrize("hold", [0.0, 3.0])
async def test_an_abandoned_session_is_closed(zookeeper: ZooKeeperServer, chroot: str, hold: float) -> None:
    """From another thread, with the loop blocked or not: its znodes are deleted at once, its requests fail, and closing it works."""
    session = await ZooKeeperSession.connect(ZooKeeperSettings(zookeeper.connect(chroot), 60_000))
    await session.ensure_path("/here")
    abandoning = asyncio.get_running_loop().run_in_executor(None, session.abandon)
    time.sleep(hold)  # noqa: ASYNC251 - the test blocks the loop
    await abandoning
    await until(lambda: session.state is SessionState.LOST)
    with pytest.raises(SessionLostError):
        await session.get("/here")
    await session.close()
