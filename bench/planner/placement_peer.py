"""kafka-reassign-partitions in a JVM: `java/PlacementPeer.java`, compiled and kept hot by `jvm`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bench.jvm import Jvm, class_path_of, compile_java
from lab.downloads.jars import kafka_jars
from lab.processes.folder import lab_folder

SOURCE = Path(__file__).parent / "java" / "PlacementPeer.java"


class PlacementJvm(Jvm):
    """The compiled peer of this module."""

    def command(self, *work: str) -> list[str]:
        """Return the command line of one JVM for one kind of work."""
        whole = super().command(*work)
        main_class = len(whole) - len(work) - 1
        return [*whole[:main_class], SOURCE.stem, *work]


@contextlib.contextmanager
def compiled_placement_peer() -> Iterator[PlacementJvm]:
    """Compile the peer and yield it; the classes are deleted with the block."""
    with lab_folder() as folder:
        compile_java([SOURCE], folder, class_path_of(kafka_jars()))
        yield PlacementJvm(folder)
