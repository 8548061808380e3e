"""PLAIN: RFC 4616, with the error messages of Kafka's PlainSaslServer."""

import pytest

from kafka_wire.sasl.plain import read_plain, start_plain_client, verify_plain
from kafka_wire.sasl.steps import Authenticated, SaslFailed
from tests.kafka_wire.sasl.judge import JavaRefusedError, SaslJudge


def test_the_client_sends_one_message_and_the_reply_is_empty() -> None:
    """RFC 4616, section 2: [authzid] NUL authcid NUL passwd."""
    step = start_plain_client("tim", "tanstaaftanstaaf")

    assert step.reply == b"\0tim\0tanstaaftanstaaf"
    assert step.state.take(b"").state == Authenticated("tim")
    assert verify_plain(read_plain(step.reply), "tanstaaftanstaaf").state == Authenticated("tim")


@pytest.mark.parametrize(
    ("message", "password"),
    [
        (b"\0tim\0wrong", "right"),
        (b"\0tim\0wrong", None),
        (b"\0tim\0" + b"x" * 9, "x" * 8),
        (b"someone\0tim\0right", "right"),
        (b"\0\0right", "right"),
        (b"\0tim\0", "right"),
        (b"\0tim", "right"),
        (b"\0tim\0right\0more", "right"),
        (b"", "right"),
    ],
)
@pytest.mark.java
def test_invalid_messages_are_rejected_with_kafkas_messages(
    message: bytes, password: str | None, sasl_judge: SaslJudge
) -> None:
    """PlainSaslServer returns the cause to the client, without a secret."""
    sasl_judge.ask("plain", "tim" if password is not None else "nobody", password or "x")
    with pytest.raises(SaslFailed) as failed:
        verify_plain(read_plain(message), password)
    with pytest.raises(JavaRefusedError) as java:
        sasl_judge.ask("to-server", message)

    assert failed.value.peer_message is not None
    assert str(java.value).endswith(failed.value.peer_message)


def test_the_representation_contains_no_password() -> None:
    """A claim may appear in a traceback."""
    assert "tanstaaf" not in repr(read_plain(b"\0tim\0tanstaaf"))


@pytest.mark.parametrize(("user", "password"), [("", "p"), ("u", ""), ("u", "p\0q"), ("u\0", "p")])
def test_unencodable_credentials_are_not_sent(user: str, password: str) -> None:
    """A NUL character would shift the fields."""
    with pytest.raises(SaslFailed):
        start_plain_client(user, password)
