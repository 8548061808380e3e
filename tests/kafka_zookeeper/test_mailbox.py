"""From other threads into the loop."""

import asyncio
import threading

from kafka_zookeeper.mailbox import MAX_CALLBACKS_PER_ITERATION, Mailbox


async def test_letters_of_a_thread_come_in_order_and_in_the_loops_thread():
    """Order is what a watch is worth."""
    mailbox, done = Mailbox(asyncio.get_running_loop()), asyncio.Event()
    came: list[tuple[int, int]] = []

    def post_all() -> None:
        for number in range(5_000):
            mailbox.post(lambda number=number: came.append((number, threading.get_ident())))  # type: ignore[misc]
        mailbox.post(done.set)

    thread = threading.Thread(target=post_all)
    thread.start()
    await done.wait()
    thread.join()

    assert [(number, threading.get_ident()) for number in range(5_000)] == came


async def test_others_get_their_turn_between_many_letters():
    """A flood of answers must not starve the loop."""
    loop = asyncio.get_running_loop()
    mailbox, done = Mailbox(loop), asyncio.Event()
    came: list[int] = []
    seen_by_others: list[int] = []
    for number in range(MAX_CALLBACKS_PER_ITERATION * 2):
        mailbox.post(lambda number=number: came.append(number))  # type: ignore[misc]
    mailbox.post(done.set)
    loop.call_soon(lambda: seen_by_others.append(len(came)))

    await done.wait()

    assert seen_by_others == [MAX_CALLBACKS_PER_ITERATION]
    assert list(range(MAX_CALLBACKS_PER_ITERATION * 2)) == came


async def test_a_letter_that_raises_does_not_hold_up_the_others():
    """One bad callback must not cost the session its answers; the loop reports it."""
    loop = asyncio.get_running_loop()
    mailbox, done = Mailbox(loop), asyncio.Event()
    reported: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _loop, context: reported.append(context))

    mailbox.post(lambda: 1 // 0)
    mailbox.post(done.set)
    await done.wait()

    assert [type(context["exception"]) for context in reported] == [ZeroDivisionError]


def test_a_letter_to_a_closed_loop_is_dropped():
    """Kazoo's thread outlives the loop for a moment, and must not die of that."""
    loop = asyncio.new_event_loop()
    mailbox = Mailbox(loop)
    loop.close()

    mailbox.post(lambda: None)
