"""A refusal in Kafka's terms: the error code that the caller gets and the words that go with it.

Leaves out exceptions: the core answers with values.
"""

from dataclasses import dataclass

from kafka_wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something was not done."""

    code: ErrorCode
    message: str

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"
