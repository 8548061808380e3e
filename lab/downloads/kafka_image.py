"""The Java programs of the image of Kafka, compiled as its Dockerfile does, and the jars that they need in addition to Kafka's."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from lab.downloads.cache import cached
from lab.downloads.jars import java, kafka_jars
from lab.downloads.maven import fetch_jars
from lab.processes.commands import run_to_end

IMAGE = Path(__file__).resolve().parents[2] / "images" / "kafka"

JAR = "steward.jar"

COMPILE_TIMEOUT_S = 180.0
"""Some hundred times what it takes on a machine that is not busy."""


def metrics_jars() -> Path:
    """Return the folder with the exporter of JMX; the first call downloads it."""
    pom = IMAGE / "pom.xml"
    name = f"metrics-jars-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    return cached(name, lambda folder: fetch_jars(pom, folder, what="the exporter of JMX", among="collector-*.jar"))


def agent_jar() -> Path:
    """Return the jar of the image's programs, an agent for brokers."""
    sources = sorted((IMAGE / "java" / "steward").glob("*.java"))
    content = b"".join(source.read_bytes() for source in sources)
    digest = hashlib.sha256(content + str(Path(java()).resolve()).encode()).hexdigest()[:12]
    return cached(f"kafka-image-{digest}", partial(_compile, sources)) / JAR


def class_path() -> str:
    """Return the class path of the image."""
    return f"{kafka_jars()}/*:{metrics_jars()}/*:{agent_jar()}"


def _compile(sources: list[Path], folder: Path) -> None:
    tools = Path(java()).resolve().parent
    classes, manifest = folder / "classes", folder / "manifest"
    manifest.write_text("Premain-Class: steward.BrokerProbe\n", encoding="ascii")
    jars = f"{kafka_jars()}/*:{metrics_jars()}/*"
    commands: list[list[str | Path]] = [
        [tools / "javac", "--release", "17", "-cp", jars, "-d", classes, *sources],
        [tools / "jar", "--create", "--file", folder / JAR, "--manifest", manifest, "-C", classes, "."],
    ]
    for command in commands:
        run_to_end(command, folder=folder, timeout_s=COMPILE_TIMEOUT_S)
