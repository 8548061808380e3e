"""`make mutants`: seed bugs into a copy of the controller, one at a time; its tests must catch each of them.

This checks the tests: an invariant that no seeded bug breaks is not checked. The copy is a temporary folder, so the checkout stays
unchanged however the run ends. Tests of single rules run first; bugs that they miss must be caught by the state machine (`--machine`:
only the state machine, for all bugs). `soaking.seeded_bugs` lists the bugs.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.soaking.seeded_bugs import CORE, SEEDED_BUGS, SeededBug

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    "controller_core",
    "kafka_log",
    "kafka_metadata",
    "kafka_node",
    "kafka_wire",
    "kafka_zookeeper",
    "operator",
    "move_planner",
    "lab",
    "tests",
    "pyproject.toml",
)
"""Files that the core's tests need, with tests and their helpers."""
MACHINE = "tests/controller_core/decisions/test_cluster_machine.py"
JUDGED = "tests/controller_core/rules/judged"
"""Tests that need Java: they take long, and the other tests find the same bugs."""
TIMEOUT_S = 1_800
"""A bug that makes a test loop forever is caught too."""
TAIL = 2_000
"""Characters of pytest's output that are shown where it could not run."""
SHRINK_NOTHING = """
from hypothesis import Phase
settings.register_profile("mutants", deadline=None, phases=[Phase.explicit, Phase.generate])
settings.load_profile("mutants")
"""
"""Added to the copy's tests: one failing example is enough, and shrinking takes minutes."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.mutants", description="Seed bugs; the tests must catch them."
    )
    parser.add_argument(
        "--only", default="", metavar="REGEX", help='only bugs whose names match, such as "C9 " or "epoch"'
    )
    parser.add_argument(
        "--no-baseline", action="store_true", help="do not check first that the tests pass without a bug"
    )
    parser.add_argument("--machine", action="store_true", help="run only the state machine on the core's bugs")
    return parser.parse_args(arguments)


def copy_tree(into: Path) -> None:
    """Copy packages and tests as they are in the checkout, but for what git ignores."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COPIED]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    with (into / "tests" / "conftest.py").open("a") as conftest:
        conftest.write(SHRINK_NOTHING)


def first_failure(tree: Path, tests: Sequence[str]) -> str | None:
    """Run tests until one fails; returns its name, None where all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {TIMEOUT_S} s"
    if done.returncode == pytest.ExitCode.OK:
        return None
    if done.returncode != pytest.ExitCode.TESTS_FAILED:
        # Tests that did not run caught no bug.
        raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout[-TAIL:]}{done.stderr[-TAIL:]}")
    failure = next(line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")))
    return failure.split(" - ")[0].split(maxsplit=1)[1]


def catch(tree: Path, tests: Sequence[str], *, only_machine: bool) -> str | None:
    """Return the name of the first test that fails; the state machine runs last."""
    is_core = tests == CORE
    if not (is_core and only_machine):
        single = [*tests, f"--ignore={MACHINE}", f"--ignore={JUDGED}"]
        if (caught := first_failure(tree, single)) is not None:
            return caught
    return first_failure(tree, [MACHINE]) if is_core else None


def seed(tree: Path, bug: SeededBug, *, only_machine: bool) -> str | None:
    """Seed one bug, return the test that catches it, and remove the bug."""
    module = tree / bug.path
    sound, written = module.read_text(), module.stat().st_mtime
    module.write_text(sound.replace(bug.before, bug.after))
    # Python takes old bytecode as valid for a source of the same second and size.
    os.utime(module, (written + 2, written + 2))
    try:
        return catch(tree, bug.tests, only_machine=only_machine)
    finally:
        module.write_text(sound)
        os.utime(module, (written + 4, written + 4))


def main(arguments: Sequence[str] | None = None) -> int:
    """Seed the chosen bugs; return 1 when one was not caught."""
    asked = parse(sys.argv[1:] if arguments is None else arguments)
    bugs = [bug for bug in SEEDED_BUGS if re.search(asked.only, f"{bug.invariant} {bug.name}")]
    missed = 0
    # SIGTERM ends the run in order: the copy is deleted, and tests that run in it are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="steward-mutants-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        for tests in [] if asked.no_baseline else dict.fromkeys(bug.tests for bug in bugs):
            if (failure := catch(tree, tests, only_machine=asked.machine)) is not None:
                print(f"{failure} fails without any bug: fix it first")
                return 1
        print("| | seeded bug | caught by | s |\n| --- | --- | --- | --- |", flush=True)
        for bug in bugs:
            began = time.monotonic()
            caught = seed(tree, bug, only_machine=asked.machine)
            missed += caught is None
            print(
                f"| {bug.invariant} | {bug.name} | {caught or 'not caught'} | {time.monotonic() - began:.0f} |",
                flush=True,
            )
    print(f"{len(bugs) - missed} of {len(bugs)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
