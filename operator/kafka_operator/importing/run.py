"""Reads the topics of a live cluster and writes their manifests: to a stream as one document after another, or to a folder, a file each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Protocol, TextIO

import yaml

from kafka_operator.admin.port import AdminError
from kafka_operator.decide.kafka.layout import Layout
from kafka_operator.decide.kafka.observed import ConfigValue, Failure, KafkaTopic, Moves
from kafka_operator.importing.manifests import ImportSelection, Manifest, is_selected, manifests_of, uneven
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.listed import listed

MAX_ASKED = 200
"""Topics in one DescribeConfigs without names of settings: an answer of some 500 kB."""

LINE_WIDTH = 120
"""Columns of the YAML that is written; longer words are kept whole."""


class ImportFailedError(Exception):
    """The import cannot be carried out; the message contains the reason."""


class Source(Protocol):
    """The Admin calls that an import makes, all of which only read; every call may raise AdminError."""

    async def describe_layout(self, names: Sequence[str] | None) -> Layout:
        """Return all topics."""
        ...

    async def describe_all_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        """Return what is set on topics themselves."""
        ...

    async def list_reassignments(self) -> Moves:
        """Return all moves."""
        ...


async def read_topics(source: Source, selection: ImportSelection, warn: Callable[[str], None]) -> list[Manifest]:
    """Return the manifests of the topics that are wanted; ImportFailedError when they cannot be read."""
    try:
        layout = await source.describe_layout(None)
        topics = [topic for name, topic in sorted(layout.topics.items()) if is_selected(name, selection)]
        topics = _at_their_targets(topics, await _moves(source, warn))
        configs = await _configs(source, [topic.name for topic in topics])
    except AdminError as error:
        raise ImportFailedError(str(error)) from error
    odd = uneven(topics)
    if odd:
        warn(
            f"partitions of one topic have different numbers of replicas; the smallest number is written: {listed(odd)}"
        )
    return manifests_of((replace(topic, config=configs.get(topic.name, {})) for topic in topics), selection)


def write_stream(manifests: Iterable[Manifest], stream: TextIO) -> None:
    """Write all manifests as one stream of YAML documents."""
    stream.writelines(f"---\n{_yaml(manifest)}" for manifest in manifests)


def write_folder(manifests: Sequence[Manifest], folder: Path, *, overwrite: bool) -> None:
    """Write each manifest to a file of its name; ImportFailedError before anything is written where one is there and must not be replaced."""
    paths = {folder / f"{manifest.name}.yaml": manifest for manifest in manifests}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in paths if path.exists())
        if there and not overwrite:
            raise ImportFailedError(
                f"{folder} already contains these files: {listed(there)}. Use another folder, or --overwrite."
            )
        for path, manifest in paths.items():
            path.write_text(_yaml(manifest), encoding="utf-8")
    except OSError as error:
        raise ImportFailedError(f"{error.filename or folder} cannot be written: {error.strerror}") from error


def _yaml(manifest: Manifest) -> str:
    text: str = yaml.safe_dump(dict(manifest.document), sort_keys=False, allow_unicode=True, width=LINE_WIDTH)
    return text


async def _moves(source: Source, warn: Callable[[str], None]) -> Moves:
    """Return all running moves; without the right to list them a warning is printed, since a topic that moves shows more replicas than it will have."""
    try:
        return await source.list_reassignments()
    except AdminError as error:
        warn(f"running moves cannot be listed ({error}); the replication factor of a topic that moves may be too high")
        return {}


async def _configs(source: Source, names: Sequence[str]) -> dict[str, Mapping[str, ConfigValue]]:
    found: dict[str, Mapping[str, ConfigValue]] = {}
    left = iter(names)
    while chunk := list(islice(left, MAX_ASKED)):
        for name, config in (await source.describe_all_configs(chunk)).items():
            if isinstance(config, Failure):
                raise ImportFailedError(f"settings of topic {name} cannot be read: {config.name}: {config.message}")
            found[name] = config
    return found


def _at_their_targets(topics: Sequence[KafkaTopic], moves: Moves) -> list[KafkaTopic]:
    def settled(topic: KafkaTopic) -> KafkaTopic:
        partitions = tuple(
            replace(item, replicas=move.target) if (move := moves.get(Partition(topic.name, item.index))) else item
            for item in topic.partitions
        )
        return replace(topic, partitions=partitions)

    return [settled(topic) for topic in topics]
