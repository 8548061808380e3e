"""`python -m e2e [--keep] [pytest's arguments]`: create the cluster, run the tests, delete the cluster; also after an interruption.

With `--keep` the cluster stays, and the next run uses it: for work on the tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from e2e.images import ROOT
from e2e.session import kubernetes
from lab.errors import LabError

KEEP = "--keep"

TESTS = Path(__file__).parent

LONGER = TESTS / "longer"
"""Run only when they are named: minutes each."""

SHOWN = ("-rP", "--durations=12", "--durations-min=10")
"""Print the output of passed tests, which are their figures, and the slowest tests."""

SUITE_TIMEOUT_S = 2700
"""Several times the time of the suite: ends a run that hangs."""

END_TIMEOUT_S = 60

TIMED_OUT = 124
"""Exit status of the program `timeout`."""


def main(arguments: list[str]) -> int:
    """Run everything and return pytest's exit status, or 1 when the tests did not start."""
    keep = KEEP in arguments
    try:
        with kubernetes(keep=keep) as kubeconfig:
            return _tests(kubeconfig, [argument for argument in arguments if argument != KEEP])
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the cluster was cleaned up", file=sys.stderr)
        return 128 + signal.SIGINT


def _tests(kubeconfig: Path, arguments: list[str]) -> int:
    named = any(Path(argument.split("::")[0]).exists() for argument in arguments)
    chosen = arguments if named else [str(TESTS), f"--ignore={LONGER}", *arguments]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen([sys.executable, "-m", "pytest", *SHOWN, *chosen], cwd=ROOT, env=environment) as tests:
        try:
            return tests.wait(SUITE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            print(f"the tests did not end within {SUITE_TIMEOUT_S} s", file=sys.stderr)
            return TIMED_OUT
        finally:
            if tests.poll() is None:
                tests.send_signal(signal.SIGINT)
                try:
                    tests.wait(END_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    tests.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
