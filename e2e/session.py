"""Set-up and deletion of a cluster with the images, around the tests.

`KUBECONFIG` names a cluster to use instead; a kind cluster gets the images too, any other must be able to pull them by the names in
`e2e.images`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e.images import build_images, load_images
from e2e.kind import cluster
from e2e.kind.programs import clients
from e2e.kind.versions import BASE_IMAGE
from e2e.kube import Kube, kind_name
from lab.downloads.cache import cache_folder
from lab.processes.interruption import end_as_by_ctrl_c


@contextlib.contextmanager
def kubernetes(*, keep: bool) -> Iterator[Path]:
    """Yield the kubeconfig of a cluster with the images in it; it is deleted with the block, unless it is to be kept or existed before.

    SIGTERM ends the block as Ctrl-C does.
    """
    end_as_by_ctrl_c()
    given = os.environ.get("KUBECONFIG")
    if given:
        yield _given(Path(given))
        return
    kubeconfig = cache_folder() / "e2e-kubeconfig"
    with timed("an engine and an image to build on are there"):
        base = cluster.prepare()
    if cluster.exists(clients()) and not keep:
        cluster.delete(kubeconfig)  # left by a run that was killed
    try:
        # Side by side: the one waits for its nodes, the other for package registries.
        with ThreadPoolExecutor(1) as aside:
            built = aside.submit(_build, base)
            if not cluster.exists(clients()):
                with timed("a cluster of three nodes in three racks is up"):
                    cluster.create(kubeconfig, own_image=base == BASE_IMAGE)
            built.result()
        _load(cluster.NAME)
        yield kubeconfig
    finally:
        if not keep:
            with timed("the cluster is taken down"):
                cluster.delete(kubeconfig)


def _given(kubeconfig: Path) -> Path:
    name = kind_name(Kube(clients().kubectl, kubeconfig))
    if name is not None:
        _build(cluster.prepare())
        _load(name)
    return kubeconfig


def _build(base: str) -> None:
    with timed("the product's images are built"):
        build_images(base)


def _load(name: str) -> None:
    with timed("the nodes have the images"):
        load_images(name)


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the time of a step."""
    started = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - started:.0f} s", flush=True)
