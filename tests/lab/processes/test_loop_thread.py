"""An event loop in a thread: it runs coroutines, and leaves no task for the garbage collector at its end."""

import asyncio

import pytest

from lab.processes.loop_thread import LoopThread


def test_a_task_that_waits_forever_ends_with_the_loop() -> None:
    """CPython issue 106905: a pending coroutine that is collected later may end another test's report."""
    thread, ended = LoopThread("a-test"), []

    async def wait_forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def begin() -> None:
        begun.append(asyncio.create_task(wait_forever()))
        await asyncio.sleep(0)

    begun: list[asyncio.Task[None]] = []
    thread.start()
    thread.wait(begin())
    thread.close()
    assert ended == ["cancelled"]
    assert begun.pop().cancelled()
    assert thread.ended


def test_a_loop_with_nothing_to_do_ends_as_well() -> None:
    """It is the usual case."""
    thread = LoopThread("a-test")
    thread.start()
    thread.close()
    assert thread.ended


def test_an_error_of_a_coroutine_reaches_the_test() -> None:
    """The caller gets the error itself, and the loop continues."""
    thread = LoopThread("a-test")

    async def wrong() -> None:
        raise ValueError("wrong")

    async def right() -> str:
        return "right"

    thread.start()
    with pytest.raises(ValueError, match="wrong"):
        thread.wait(wrong())
    assert thread.wait(right()) == "right"
    thread.close()
