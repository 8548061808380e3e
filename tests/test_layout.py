"""The shape of the checkout that everything stands on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_operator_is_no_package() -> None:
    """With an `operator/__init__.py` the standard library's `operator` is shadowed, and Python itself breaks."""
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_the_standard_librarys_operator_is_found_from_the_root_of_the_checkout() -> None:
    """Also where the checkout comes first on the path, as it does for `python -m`."""
    done = subprocess.run(
        [sys.executable, "-c", "import operator; print(operator.itemgetter)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (0, "<class 'operator.itemgetter'>\n") == (done.returncode, done.stdout)
