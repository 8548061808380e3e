"""Callbacks from other threads to the event loop."""

import asyncio
import threading

from kafka_zookeeper.mailbox import MAX_CALLBACKS_PER_ITERATION, Mailbox


async def test_callbacks_are_called_in_order_in_the_loops_thread():
    """Watches rely on the order."""
    mailbox, done = Mailbox(asyncio.get_running_loop()), asyncio.Event()
    came: list[tuple[int, int]] = []

    def post_all() -> None:
        for number in range(5_000):
            mailbox.post(lambda number=number: came.append((number, threading.get_ident())))
        mailbox.post(done.set)

    thread = threading.Thread(target=post_all)
    thread.start()
    await done.wait()
    thread.join()

    assert [(number, threading.get_ident()) for number in range(5_000)] == came


async def test_other_callbacks_of_the_loop_run_between_many_callbacks():
    """A flood of responses must not starve the loop."""
    loop = asyncio.get_running_loop()
    mailbox, done = Mailbox(loop), asyncio.Event()
    came: list[int] = []
    seen_by_others: list[int] = []
    for number in range(MAX_CALLBACKS_PER_ITERATION * 2):
        mailbox.post(lambda number=number: came.append(number))
    mailbox.post(done.set)
    loop.call_soon(lambda: seen_by_others.append(len(came)))

    await done.wait()

    assert seen_by_others == [MAX_CALLBACKS_PER_ITERATION]
    assert list(range(MAX_CALLBACKS_PER_ITERATION * 2)) == came


async def test_a_callback_that_raises_does_not_delay_the_others():
    """The session still receives its responses, and the loop reports the error."""
    loop = asyncio.get_running_loop()
    mailbox, done = Mailbox(loop), asyncio.Event()
    reported: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _loop, context: reported.append(context))

    mailbox.post(lambda: 1 // 0)
    mailbox.post(done.set)
    await done.wait()

    assert [type(context["exception"]) for context in reported] == [ZeroDivisionError]


def test_a_callback_for_a_closed_loop_is_dropped():
    """Kazoo's thread runs a little longer than the loop, and must not fail."""
    loop = asyncio.new_event_loop()
    mailbox = Mailbox(loop)
    loop.close()

    mailbox.post(lambda: None)
