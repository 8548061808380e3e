"""The Spark session that tests share; one whose JVM did not respond before a test's timeout is replaced.

The timeout ends the test in the middle of a call of the JVM. The response to that call is still to come, so each later call on the same
connection would read the response to the one before it, and all later tests would fail. Leaves out why a JVM does not respond: `discard`
returns the stacks of its threads for the report of the test.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from balance_analytics.jobs.session import session

JSTACK_TIMEOUT_S = 30
"""A JVM that does not reach a safepoint never responds to jstack."""


class SharedSpark:
    """Creates the session at its first use, and again after `discard`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._session: SparkSession | None = None

    @property
    def is_started(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    def get(self) -> SparkSession:
        """Return the session; the first call starts a JVM."""
        if self._session is None:
            self._session = session(self._settings)
        return self._session

    def stop(self) -> None:
        """Stop the session; its JVM ends with this process."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def discard(self) -> str:
        """Kill the JVM and forget the session; return the stacks of the JVM's threads, or why there are none."""
        gateway = SparkContext._gateway
        assert gateway is not None, "the session has a JVM"
        jvm = gateway.proc
        stacks = _stacks(jvm.pid)
        jvm.kill()
        jvm.wait()
        context = SparkContext._active_spark_context
        if context is not None:
            context._jsc = None  # without it, stop() calls nothing in the JVM
            context.stop()
        with suppress(Py4JError, OSError):  # the JVM has ended
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        self._session = None
        return stacks


def _stacks(pid: int) -> str:
    try:
        done = subprocess.run(
            ["jstack", "-l", str(pid)], capture_output=True, text=True, timeout=JSTACK_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"jstack failed: {error}"
    return done.stdout or f"jstack failed: {done.stderr}"
