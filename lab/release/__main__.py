"""`python -m lab.release [--registry REGISTRY]`: write the files of a release to `dist/`; `make dist` runs it.

Two runs on one commit write the same bytes. Images are not built here: `docker-bake.json` is for a machine with BuildKit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from lab.downloads.helm import helm
from lab.errors import LabError
from lab.release.bill_of_materials import write_bill
from lab.release.chart import operator_manifest, package_chart
from lab.release.commands import ROOT, commit, commit_time_s, run
from lab.release.images import bake_file
from lab.setup.progress import Step, run_steps
from lab.setup.python_packages import CONSTRAINED

FOLDER = ROOT / "dist"

CHECKSUMS = "SHA256SUMS"


def write_release(folder: Path, registry: str) -> Sequence[Step]:
    """Return the steps that write all files to an empty folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version, epoch_s = project["version"], commit_time_s()
    package = folder / f"steward-{version}.tgz"
    image = {"repository": f"{registry}/steward" if registry else "steward"}

    def chart() -> None:
        package_chart(helm(), folder, epoch_s)
        (folder / "operator.yaml").write_text(operator_manifest(helm(), package, image), encoding="utf-8")

    def wheel() -> None:
        run(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            *CONSTRAINED,
            "--wheel-dir",
            folder,
            ROOT,
            epoch_s=epoch_s,
        )

    def bill() -> None:
        (built,) = folder.glob("*.whl")
        write_bill(built, folder / f"steward-{version}.cdx.json", epoch_s)

    def images() -> None:
        content = bake_file(version, registry, commit(), epoch_s)
        (folder / "docker-bake.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    return (
        Step("chart, and manifest of the operator", chart),
        Step("Python package", wheel),
        Step("software bill of materials", bill),
        Step("definition of the images", images),
        Step("checksums", lambda: write_checksums(folder)),
    )


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS of all files of the folder, in the format of sha256sum."""
    sums = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.name != CHECKSUMS
    }
    lines = [f"{digest}  {name}\n" for name, digest in sorted(sums.items())]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Write all files and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.release", description="Write the files of a release to dist/.")
    parser.add_argument("--registry", default="", help="Registry of the images, such as registry.example.org/kafka.")
    registry = parser.parse_args(arguments).registry.rstrip("/")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    try:
        failures = run_steps(write_release(FOLDER, registry))
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for failed in failures:
        sys.stderr.write(f"{failed.error}\n")
    if not failures:
        sys.stdout.write(f"{FOLDER}: {', '.join(sorted(path.name for path in FOLDER.iterdir()))}\n")
        sys.stdout.write("images: docker buildx bake --file dist/docker-bake.json\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
