"""Heartbeats of a broker: what it asks for in each phase, and what the answers change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from kafka_wire import Body, ErrorCode
from light_broker.control.kraft.heartbeats import Heartbeats
from light_broker.control.port import ControlPlaneError
from tests.waiting import until

PATIENCE_S = 10.0
FENCED = {"error_code": 0, "is_caught_up": False, "is_fenced": True, "should_shut_down": False}
CAUGHT_UP = {**FENCED, "is_caught_up": True}
SERVING = {**CAUGHT_UP, "is_fenced": False}
STOPPED = {**SERVING, "is_fenced": True, "should_shut_down": True}


class Controller:
    """Answers from a list, the last one without end; errors are codes."""

    def __init__(self, *answers: Body | ErrorCode) -> None:
        self.answers = list(answers)
        self.received: list[Body] = []
        self.offline: set[UUID] = set()

    async def answer(self, body: Body) -> Body:
        """Answer one heartbeat."""
        self.received.append(body)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, ErrorCode):
            raise ControlPlaneError(found, "no answer")
        return found


@asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[Heartbeats]:
    """Run heartbeats against a controller, without a pause between them."""
    heartbeats = Heartbeats(
        controller.answer,
        interval_s=0.001,
        body=lambda: {"broker_id": 2, "broker_epoch": 5, "current_metadata_offset": 9},
        offline_directories=lambda: controller.offline,
    )
    task = asyncio.create_task(heartbeats.run())
    try:
        yield heartbeats
    finally:
        task.cancel()


async def reached(event: asyncio.Event) -> None:
    """Wait for an event."""
    await asyncio.wait_for(event.wait(), PATIENCE_S)


async def test_a_broker_stays_fenced_until_it_asks_to_serve() -> None:
    """BrokerLifecycleManager: STARTING wants the fence, RECOVERY does not."""
    controller = Controller(FENCED, CAUGHT_UP)
    async with running(controller) as heartbeats:
        await reached(heartbeats.is_caught_up)
        assert not heartbeats.is_unfenced.is_set()
        controller.answers = [SERVING]
        heartbeats.serve()
        await reached(heartbeats.is_unfenced)

    assert [request["want_fence"] for request in controller.received][:2] == [True, True]
    assert controller.received[-1]["want_fence"] is False
    assert controller.received[0]["current_metadata_offset"] == 9


async def test_a_controlled_shutdown_lasts_until_the_controller_lets_the_broker_stop() -> None:
    """KIP-631: want_shut_down until should_shut_down."""
    controller = Controller(SERVING)
    async with running(controller) as heartbeats:
        await reached(heartbeats.is_unfenced)
        assert not heartbeats.may_stop.is_set()
        controller.answers = [SERVING, STOPPED]
        heartbeats.stop_serving()
        await reached(heartbeats.may_stop)

    assert controller.received[-1]["want_shut_down"] is True


async def test_a_late_broker_is_fenced_and_asks_to_serve_again() -> None:
    """The controller has fenced it after broker.session.timeout.ms; its next heartbeats are accepted again."""
    controller = Controller(SERVING)
    async with running(controller) as heartbeats:
        heartbeats.serve()
        await reached(heartbeats.is_unfenced)
        controller.answers = [CAUGHT_UP]
        await until(lambda: not heartbeats.is_unfenced.is_set())
        controller.answers = [SERVING]
        await reached(heartbeats.is_unfenced)


async def test_errors_are_retried() -> None:
    """A controller without an answer, and one that rejects the epoch."""
    stale = {**FENCED, "error_code": ErrorCode.STALE_BROKER_EPOCH}
    controller = Controller(ErrorCode.REQUEST_TIMED_OUT, stale, stale, SERVING)
    async with running(controller) as heartbeats:
        await reached(heartbeats.is_unfenced)

    assert len(controller.received) >= 4


async def test_failed_directories_are_in_each_heartbeat() -> None:
    """BrokerHeartbeat from version 1 on (KIP-858)."""
    controller = Controller(SERVING)
    controller.offline = {UUID(int=300), UUID(int=200)}
    async with running(controller) as heartbeats:
        await reached(heartbeats.is_unfenced)

    assert controller.received[0]["offline_log_dirs"] == [UUID(int=200), UUID(int=300)]
