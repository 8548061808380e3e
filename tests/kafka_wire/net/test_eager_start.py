"""A coroutine that runs without a task until it waits for the first time."""

import asyncio
from collections.abc import Callable

import pytest

from kafka_wire.net.eager_start import run_to_first_wait


async def test_a_coroutine_that_does_not_wait_needs_no_task() -> None:
    """It has ended when the call returns."""
    steps: list[str] = []

    async def work() -> None:
        steps.append("done")

    assert run_to_first_wait(work()) is None
    assert steps == ["done"]


async def test_the_rest_of_a_coroutine_that_waits_runs_in_a_task() -> None:
    """A task drives it through all of its waits, also those that only let others run."""
    steps: list[str] = []
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        steps.append("started")
        steps.append(await answer)
        await asyncio.sleep(0)
        steps.append("ended")

    rest = run_to_first_wait(work())
    assert steps == ["started"]
    assert rest is not None
    task = asyncio.get_running_loop().create_task(rest)
    answer.set_result("answered")
    await task

    assert steps == ["started", "answered", "ended"]


async def test_an_exception_of_the_wait_reaches_the_coroutine() -> None:
    """And one that it raises ends its task."""
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        with pytest.raises(OSError, match="disk"):
            await answer
        raise LookupError

    rest = run_to_first_wait(work())
    assert rest is not None
    task = asyncio.get_running_loop().create_task(rest)
    answer.set_exception(OSError("disk"))

    with pytest.raises(LookupError):
        await task


@pytest.mark.parametrize("let_it_start", [False, True])
async def test_a_cancelled_task_cancels_the_coroutine_where_it_waits(let_it_start: bool) -> None:
    """Also before the task has run for the first time: the coroutine has begun, and has to clean up."""
    steps: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            steps.append("cleaned up")

    rest = run_to_first_wait(work())
    assert rest is not None
    task = asyncio.get_running_loop().create_task(rest)
    if let_it_start:
        await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["cleaned up"]


def raise_cancelled() -> None:
    """Raise what a cancelled future raises."""
    raise asyncio.CancelledError


def raise_error() -> None:
    """Raise an error of the handler."""
    raise ValueError("failed")


async def test_an_error_before_the_first_wait_is_raised_at_once() -> None:
    """A cancellation ends the coroutine without one, as it ends a task."""

    async def work(fail: Callable[[], None]) -> None:
        fail()

    with pytest.raises(ValueError, match="failed"):
        run_to_first_wait(work(raise_error))
    assert run_to_first_wait(work(raise_cancelled)) is None
