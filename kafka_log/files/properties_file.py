"""A properties file of Kafka, such as server.properties."""

from pathlib import Path

from kafka_log.format.java_properties import parse_properties

MAX_FILE_BYTES = 1_048_576
"""Kafka's largest example has 20 kB; a larger file is a wrong path."""


def read_properties_file(path: Path) -> dict[str, str]:
    """Return the values in a file. Raises ValueError, with the path."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{path} has over {MAX_FILE_BYTES} bytes")
    try:
        return parse_properties(data)
    except ValueError as error:
        raise ValueError(f"{path} is not a properties file: {error}") from error
