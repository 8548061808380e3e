"""What goes wrong, in the user's words: errors that end a run, and what a run goes on without.

An `AnalyticsError` says what happened, to what, and what to do; it is the last line of the driver's log. What only takes something
away from the study is a `LeftOut` of the result. Leaves out when they are raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from balance_analytics.model.results import LeftOut

MAX_CAUSE_CHARACTERS = 400
"""Of what Spark says: its first sentence; the log above has the rest."""

_UNREACHABLE = (
    "UnknownHostException",
    "ConnectException",
    "NoRouteToHostException",
    "SocketTimeoutException",
    "SdkClientException",
    "AccessDenied",
    "NoSuchBucket",
    "403 Forbidden",
)
"""Parts of what Hadoop's file systems say when the store, not the file, is the trouble."""

_UNREADABLE = "UnreadableFileError: "
"""Before the words of a Python task that cannot read a file, which begin with the file's path."""

_CORRUPT = (
    *("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "is not a Parquet file", "Could not read footer"),
    *(_UNREADABLE, "ChecksumException", "Input path does not exist"),
)

_GONE = ("FILE_NOT_EXIST", "Input path does not exist")
"""Parts of errors for a file that Spark has listed and cannot find, or that a manifest names."""

_NO_FILE_SYSTEM = (
    "No FileSystem for scheme",
    "ClassNotFoundException: Class org.apache.hadoop.fs",
    "S3AFileSystem not found",
)


class AnalyticsError(Exception):
    """A run cannot go on; the text says what happened, to what, and what to do."""


class CorruptFile(AnalyticsError):  # noqa: N818 - what is the matter, not that something is
    """A file cannot be read; `files.without_corrupt` finds which, and goes on without."""


class MissingFile(CorruptFile):
    """A file was there when the job listed files, and is gone; reading once more lists them again."""


class LeftOuts:
    """What this run went on without, in the order found; the same thing twice is counted together."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], int] = {}

    def add(self, what: str, count: int, remedy: str) -> None:
        """Note it, unless there is nothing."""
        if count:
            self._found[what, remedy] = self._found.get((what, remedy), 0) + count

    def all(self) -> tuple[LeftOut, ...]:
        """Return everything that was noted."""
        return tuple(LeftOut(what, count, remedy) for (what, remedy), count in self._found.items())


@contextmanager
def told_of(place: str, what: str) -> Iterator[None]:
    """Turn what Spark and the JVM raise about `place`, which holds `what`, into an `AnalyticsError`."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if any(sign in str(error) for sign in _CORRUPT):
            cause = " ".join(str(error).rpartition(_UNREADABLE)[2].split())[:MAX_CAUSE_CHARACTERS]
            if any(sign in str(error) for sign in _GONE):
                words = f"files with {what} at {place} were deleted while they were read: run this again: {cause}"
                raise MissingFile(words) from error
            raise CorruptFile(corrupt_words(what, cause)) from error
        raise AnalyticsError(_words(str(error), place, what)) from error


def none_yet(what: str, place: str) -> str:
    """Return what to do where nothing is stored yet.

    >>> none_yet("samples", "/samples")
    'there are no samples yet at /samples: start `steward sampler`, and run this once it has taken samples for some hours'
    """
    todo = "start `steward sampler`, and run this once it has taken samples for some hours"
    return f"there are no {what} yet at {place}: {todo}"


def corrupt_words(what: str, cause: str) -> str:
    """Return a sentence about a file that cannot be read."""
    return f"a file with {what} cannot be read: delete it and run this again: {cause}"


def _words(told: str, place: str, what: str) -> str:
    """Return a sentence for a user.

    >>> _words("java.net.ConnectException: refused", "s3a://b/facts", "facts").split(":")[0]
    'the store of the facts cannot be reached'
    """
    cause = " ".join(told.split())[:MAX_CAUSE_CHARACTERS]
    if any(sign in told for sign in _NO_FILE_SYSTEM):
        return (
            f"Spark has no file system for {place}, which holds the {what}: add its connector (hadoop-aws for s3a) to the image"
            " or to spark.jars"
        )
    if any(sign in told for sign in _UNREACHABLE):
        return (
            f"the store of the {what} cannot be reached: {place}; check its address, the credentials (spark.hadoop.fs.*) and that"
            f" the bucket is there, then run again: {cause}"
        )
    if "UnknownTopicOrPartition" in told or "PATH_NOT_FOUND" in told or "UNABLE_TO_INFER_SCHEMA" in told:
        return none_yet(what, place)
    if "TimeoutException" in told or "KafkaException" in told:
        return f"the brokers at {place} do not answer: check the address and spark's access to them, then run again: {cause}"
    return f"the {what} at {place} could not be worked on: {cause}"
