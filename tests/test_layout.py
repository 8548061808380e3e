"""Layout of the checkout."""

from __future__ import annotations

import subprocess
import sys
import tomllib
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

    assert (done.returncode, done.stdout) == (0, "<class 'operator.itemgetter'>\n")


def test_every_package_of_the_wheel_reaches_the_image_builder() -> None:
    """The images are built from the folders that .dockerignore lets through."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    let_through = (ROOT / ".dockerignore").read_text().splitlines()

    assert [package for package in packages if f"!{package.split('/')[0]}" not in let_through] == []


def test_every_package_of_the_wheel_is_checked() -> None:
    """By mypy and by import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {path.rpartition("/")[2] for path in settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}

    assert packages - set(settings["tool"]["mypy"]["packages"]) == set()
    assert packages - set(settings["tool"]["importlinter"]["root_packages"]) == set()
