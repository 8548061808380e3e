"""Errors that end a run, and inputs that a run leaves out, as messages for users.

The text of an `AnalyticsError` has what happened, to what, and what to do; it is the last line of the driver's log. An input that a run
continues without is a `LeftOut` of the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from balance_analytics.model.results import LeftOut

MAX_CAUSE_CHARACTERS = 400
"""Limit of Spark's message: its first sentence; the log has the rest."""

MAX_CAUSES = 10
"""Java exceptions that caused each other; Spark has three to five."""

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
"""Parts of messages of Hadoop's file systems about the store, not about a file."""

_UNREADABLE = "UnreadableFileError: "
"""Before the message of a Python task that cannot read a file, which begins with the file's path."""

_OVERLOADED = (
    "Status Code: 503",
    "Service Unavailable",
    "SlowDown",
    "AWSServiceThrottledException",
    "AWSStatus500Exception",
    "ConnectTimeoutException",
    "ApiCallTimeoutException",
    "Read timed out",
)
"""Parts of their messages when it is overloaded or does not respond in time; they have retried then."""

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
    """A run cannot continue; the text has what happened, to what, and what to do."""


class CorruptFile(AnalyticsError):  # noqa: N818 - it names the file's state
    """A file cannot be read; `files.without_corrupt` finds it and continues without it."""


class MissingFile(CorruptFile):
    """A file was deleted after the job had listed it; the next read lists files again."""


class LeftOuts:
    """Inputs that this run left out, in the order found; equal ones are counted together."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], int] = {}

    def add(self, what: str, count: int, remedy: str) -> None:
        """Note an input with its count, unless that is 0."""
        if count:
            self._found[what, remedy] = self._found.get((what, remedy), 0) + count

    def add_all(self, others: LeftOuts) -> None:
        """Note everything of another list."""
        for other in others.all():
            self.add(other.what, other.count, other.remedy)

    def all(self) -> tuple[LeftOut, ...]:
        """Return everything that was noted."""
        return tuple(LeftOut(what, count, remedy) for (what, remedy), count in self._found.items())


@contextmanager
def errors_about(place: str, what: str) -> Iterator[None]:
    """Turn what Spark and the JVM raise about `place`, which holds `what`, into an `AnalyticsError`."""
    try:
        yield
    except OSError as error:  # of a small file on a local disk, which Python writes
        raise AnalyticsError(f"the {what} at {place} could not be processed: {error}") from error
    except (PySparkException, Py4JError) as error:
        message = _with_causes(error)
        # Spark calls a file that the store refuses one that cannot be read.
        is_refused = any(sign in message for sign in (*_OVERLOADED, *_UNREACHABLE))
        if not is_refused and any(sign in message for sign in _CORRUPT):
            cause = " ".join(str(error).rpartition(_UNREADABLE)[2].split())[:MAX_CAUSE_CHARACTERS]
            if any(sign in message for sign in _GONE):
                gone = f"files with {what} at {place} were deleted while they were read: run this again: {cause}"
                raise MissingFile(gone) from error
            raise CorruptFile(corrupt_message(what, cause)) from error
        raise AnalyticsError(sentence_of(message, place, what)) from error


def _with_causes(error: Exception) -> str:
    """Return the text of an exception, and those of the Java exceptions that caused it."""
    texts = [str(error)]
    cause: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    for _ in range(MAX_CAUSES):
        if cause is None:
            break
        texts.append(str(cause.toString()))
        cause = cause.getCause()
    return "\n".join(texts)


def none_yet(what: str, place: str) -> str:
    """Return what to do where nothing is stored yet.

    >>> none_yet("samples", "/samples")
    'there are no samples yet at /samples: start `steward sampler`, and run this once it has taken samples for some hours'
    """
    todo = "start `steward sampler`, and run this once it has taken samples for some hours"
    return f"there are no {what} yet at {place}: {todo}"


def corrupt_message(what: str, cause: str) -> str:
    """Return a sentence about a file that cannot be read."""
    return f"a file with {what} cannot be read: delete it and run this again: {cause}"


def sentence_of(message: str, place: str, what: str) -> str:
    """Return a sentence for a user.

    >>> sentence_of("java.net.ConnectException: refused", "s3a://b/facts", "facts").split(":")[0]
    'the store of the facts cannot be reached'
    """
    cause = " ".join(message.split())[:MAX_CAUSE_CHARACTERS]
    if any(sign in message for sign in _NO_FILE_SYSTEM):
        return (
            f"Spark has no file system for {place}, which holds the {what}: add its connector (hadoop-aws for s3a) to the image"
            " or to spark.jars"
        )
    if any(sign in message for sign in _OVERLOADED):
        return (
            f"the store of the {what} is overloaded or does not respond in time: {place}; run this again, and if it happens often, let its"
            f" client retry longer (for s3a: spark.hadoop.fs.s3a.attempts.maximum): {cause}"
        )
    if any(sign in message for sign in _UNREACHABLE):
        return (
            f"the store of the {what} cannot be reached: {place}; check its address, the credentials (spark.hadoop.fs.*) and that"
            f" the bucket exists, then run again: {cause}"
        )
    if "UnknownTopicOrPartition" in message or "PATH_NOT_FOUND" in message or "UNABLE_TO_INFER_SCHEMA" in message:
        return none_yet(what, place)
    if place.startswith("kafka://") and ("TimeoutException" in message or "KafkaException" in message):
        return f"the brokers at {place} do not respond: check the address and spark's access to them, then run again: {cause}"
    return f"the {what} at {place} could not be processed: {cause}"
