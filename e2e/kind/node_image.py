"""Build of the image of a kind node from Debian's packages and Go modules: no image registry is needed.

About two minutes, once; the engine keeps the image. It holds no network configuration: `network` writes one for each node.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.command import attempt, run
from e2e.kind.programs import programs_folder
from e2e.kind.versions import BASE_IMAGE, DEBIAN, DEBIAN_IMAGE, KIND_VERSION, NODE_IMAGE, PAUSE_VERSION
from lab.downloads.go_build import KUBERNETES_VERSION, module_sources
from lab.errors import LabError

IMAGES_FOLDER = Path(__file__).parent / "images"

UNREAD = (
    "./usr/share/doc/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/apt/archives/*.deb",
    "./var/cache/apt/*.bin",
    "./var/lib/apt/lists/*",
)
"""Files that no container reads: a quarter of Debian's smallest system, which every node would have a copy of."""

TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")
"""Debian's file of trusted certificate authorities."""

BUILD_TIMEOUT_S = 900

BUILDER = "steward-node-image"

PAUSE_IMAGE = f"registry.k8s.io/pause:{PAUSE_VERSION}"

IMPORT = (
    f"echo {KUBERNETES_VERSION} > /kind/version; containerd >/dev/null 2>&1 & engine=$!; "
    "until ctr version >/dev/null 2>&1; do sleep 0.2; done; "
    "ctr --namespace k8s.io images import --no-unpack --digests /images.tar >/dev/null; kill $engine; wait"
)
"""As kind itself puts images into a node: by the node's own containerd."""


def ensure_debian_image() -> None:
    """Make the image of Debian's smallest system, if it is not there."""
    if image_exists(DEBIAN_IMAGE):
        return
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        run(
            "debootstrap",
            "--variant=minbase",
            "--include=ca-certificates",
            DEBIAN,
            root,
            timeout_s=BUILD_TIMEOUT_S,
        )
        left_out = [f"--exclude={pattern}" for pattern in UNREAD]
        with subprocess.Popen(["tar", "-C", root, *left_out, "-c", "."], stdout=subprocess.PIPE) as archive:
            done = subprocess.run(
                ["docker", "import", "-", DEBIAN_IMAGE], stdin=archive.stdout, capture_output=True, check=False
            )
        if archive.returncode or done.returncode:
            raise LabError(f"docker import of {DEBIAN_IMAGE} failed: {done.stderr.decode(errors='replace')}")


def ensure_base_image() -> None:
    """Make the image that the product's images are built on, if it is not there: Debian, with the certificate authorities of this machine.

    Registries may be behind a proxy with its own certificate authority, which an administrator added to this machine.
    """
    if image_exists(BASE_IMAGE):
        return
    ensure_debian_image()
    known = set(_certificates(run("docker", "run", "--rm", DEBIAN_IMAGE, "cat", str(TRUSTED))))
    added = (
        [certificate for certificate in _certificates(TRUSTED.read_text("ascii")) if certificate not in known]
        if TRUSTED.is_file()
        else []
    )
    with tempfile.TemporaryDirectory() as name:
        context = Path(name)
        for number, certificate in enumerate(added):
            (context / f"machine-{number}.crt").write_text(f"{certificate}\n", encoding="ascii")
        copy = "COPY *.crt /usr/local/share/ca-certificates/\nRUN update-ca-certificates\n" if added else ""
        _small_image(BASE_IMAGE, context, f"FROM {DEBIAN_IMAGE}\n{copy}")


def _certificates(bundle: str) -> list[str]:
    return re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", bundle, re.DOTALL)


def ensure_node_image() -> None:
    """Make the node's image, if it is not there."""
    if image_exists(NODE_IMAGE):
        return
    ensure_debian_image()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        archive = _control_plane_images(work)
        _stage(work)
        _commit(archive)


def image_exists(image: str) -> bool:
    """Whether the engine has the image."""
    return attempt("docker", "image", "inspect", image).returncode == 0


def build(image: str, dockerfile: Path, context: Path, *, arguments: Sequence[str] = (), stage: str = "") -> None:
    """Build an image, or one stage of it, with the engine's own builder, which needs no image of its own."""
    run(
        "docker",
        "build",
        f"--tag={image}",
        f"--file={dockerfile}",
        *(f"--build-arg={argument}" for argument in arguments),
        *([f"--target={stage}"] if stage else []),
        context,
        environment={"DOCKER_BUILDKIT": "0"},
        timeout_s=BUILD_TIMEOUT_S,
    )


def _control_plane_images(work: Path) -> Path:
    """Make what kubeadm starts as pods, under the names that it asks for; returns the archive with all of them."""
    programs = programs_folder()
    context = work / "control-plane"
    context.mkdir()
    for program in ("kube", "etcd", "coredns", "pause"):
        shutil.copy2(programs / program, context / program)
    bases = {"control-plane-base": [f"BASE={DEBIAN_IMAGE}"], "node-base": []}
    for base, arguments in bases.items():
        build(f"local/{base}", IMAGES_FOLDER / f"{base}.Dockerfile", IMAGES_FOLDER, arguments=arguments)
    build("local/control-plane", IMAGES_FOLDER / "control-plane.Dockerfile", context)
    _small_image("local/coredns", context, 'FROM local/control-plane\nENTRYPOINT ["/coredns"]\n')
    _small_image(PAUSE_IMAGE, context, 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n')
    names = [PAUSE_IMAGE]
    wanted = run(programs / "kubeadm", "config", "images", "list", f"--kubernetes-version={KUBERNETES_VERSION}")
    for name in wanted.split():
        source = PAUSE_IMAGE if "/pause:" in name else "local/coredns" if "/coredns:" in name else "local/control-plane"
        run("docker", "tag", source, name)
        names.append(name)
    archive = work / "images.tar"
    run("docker", "save", f"--output={archive}", *dict.fromkeys(names), timeout_s=BUILD_TIMEOUT_S)
    return archive


def _small_image(image: str, context: Path, text: str) -> None:
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(text, encoding="ascii")
    build(image, dockerfile, context)


def _stage(work: Path) -> None:
    """Build the node without the images in it."""
    context = work / "node"
    shutil.copytree(module_sources(f"sigs.k8s.io/kind@{KIND_VERSION}") / "images" / "base" / "files", context / "files")
    # A module's files are read-only and without the right to run them.
    run("chmod", "--recursive", "u+w", context)
    for folder in ("usr/local/bin", "kind/bin"):
        for script in (context / "files" / folder).iterdir():
            script.chmod(0o755)
    shutil.copy2(programs_folder() / "kube", context / "kube")
    build("local/node-stage", IMAGES_FOLDER / "node.Dockerfile", context)


def _commit(archive: Path) -> None:
    attempt("docker", "rm", "--force", BUILDER)
    try:
        options = [
            "--detach",
            f"--name={BUILDER}",
            "--privileged",
            "--entrypoint=sleep",
            f"--volume={archive}:/images.tar",
        ]
        run("docker", "run", *options, "local/node-stage", str(BUILD_TIMEOUT_S))
        run("docker", "exec", BUILDER, "sh", "-ec", IMPORT, timeout_s=BUILD_TIMEOUT_S)
        entrypoint = 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]'
        run("docker", "commit", f"--change={entrypoint}", BUILDER, NODE_IMAGE, timeout_s=BUILD_TIMEOUT_S)
    finally:
        attempt("docker", "rm", "--force", BUILDER)
