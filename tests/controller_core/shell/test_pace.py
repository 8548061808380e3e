"""Long computations leave the event loop free between any two steps, whichever tasks they belong to.

Source: docs/scale.md, the bound on the event loop's stalls.
"""

import asyncio

from controller_core.shell.pace import LARGE, Pace, Pauses


async def seen_by_a_timer(work: list[asyncio.Task[None]], done: list[str]) -> list[list[str]]:
    """Return the work done each time that a timer was due, until all work is done."""
    seen: list[list[str]] = []
    loop = asyncio.get_running_loop()
    while not all(task.done() for task in work):
        called = loop.create_future()
        loop.call_later(0, called.set_result, None)
        await called
        seen.append(list(done))
    return seen


async def test_a_timer_runs_between_any_two_steps() -> None:
    """Ten channels that are woken together encode one after another, with heartbeats in between."""
    pace, done = Pace(), []

    async def encode(name: str) -> None:
        for part in range(2):
            async with pace.step(LARGE):
                done.append(f"{name}{part}")

    work = [asyncio.create_task(encode(name)) for name in "abc"]
    seen = await seen_by_a_timer(work, done)

    assert sorted(f"{name}{part}" for name in "abc" for part in range(2)) == sorted(done)
    assert list(range(1, 7)) == sorted({len(part) for part in seen} - {0})


async def test_steps_run_in_the_order_in_which_they_were_requested() -> None:
    """No task runs all of its steps before another's first."""
    pace, done = Pace(), []

    async def encode(name: str) -> None:
        for _ in range(2):
            async with pace.step(LARGE):
                done.append(name)

    await asyncio.gather(encode("a"), encode("b"))

    assert done == ["a", "b", "a", "b"]


async def test_a_computation_over_few_partitions_does_not_wait() -> None:
    """A change of one ISR is not delayed by the encoding of large requests."""
    pace, done = Pace(), []

    async def large() -> None:
        for _ in range(3):
            async with pace.step(LARGE):
                done.append("large")

    work = asyncio.create_task(large())
    await asyncio.sleep(0)
    async with pace.step(LARGE - 1):
        done.append("small")
    await work

    assert done == ["large", "small", "large", "large"]


async def test_a_failed_step_does_not_hold_up_the_others() -> None:
    """The next step begins."""
    pace = Pace()

    async def fail() -> None:
        async with pace.step():
            raise ValueError("no such partition")

    failed = asyncio.gather(fail(), return_exceptions=True)
    async with pace.step():
        pass
    (error,) = await failed

    assert str(error) == "no such partition"


async def test_a_loop_pauses_by_the_amount_of_work() -> None:
    """Twice for 10 units with a limit of 4."""
    pauses, done = Pauses(4), []

    async def work() -> None:
        for number in range(10):
            await pauses.after()
            done.append(str(number))

    seen = await seen_by_a_timer([asyncio.create_task(work())], done)

    assert sorted({len(part) for part in seen} - {0}) == [3, 7, 10]
