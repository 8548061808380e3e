"""A Spark session whose JVM did not respond before a test's timeout does not fail the tests after it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark import SparkContext

from tests.balance_analytics.shared_spark import SharedSpark

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


def pid_of_jvm() -> int:
    """Return the process of Spark's JVM."""
    assert SparkContext._gateway is not None
    return SparkContext._gateway.proc.pid


@contextmanager
def interrupted(after_s: float) -> Iterator[None]:
    """Interrupt the block as pytest-timeout does: an exception is raised in a signal handler."""

    def interrupt(*_: object) -> None:
        pytest.fail("Timeout")

    timer_s, _ = signal.setitimer(signal.ITIMER_REAL, after_s)
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(pytest.fail.Exception):
            yield
    finally:
        signal.signal(signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, timer_s)


def test_a_session_that_did_not_respond_is_replaced_and_its_threads_are_reported(shared_spark: SharedSpark) -> None:
    """The next session computes in another JVM, and does not read the late response."""
    jvm = shared_spark.get().sparkContext._jvm
    assert jvm is not None
    pid = pid_of_jvm()
    with interrupted(after_s=0.2):
        jvm.java.lang.Thread.sleep(600_000)

    stacks = shared_spark.discard()

    assert "Thread.sleep" in stacks
    assert shared_spark.get().range(3).count() == 3
    assert pid_of_jvm() != pid
