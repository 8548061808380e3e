"""PLAIN: RFC 4616, with the words of Kafka's PlainSaslServer."""

import pytest

from kafka_wire.sasl.plain import read_plain, start_plain_client, verify_plain
from kafka_wire.sasl.steps import Authenticated, SaslFailed
from tests.kafka_wire_sasl.judge import JavaRefusedError, SaslJudge


def test_the_name_and_the_password_go_in_one_message_and_nothing_comes_back() -> None:
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
def test_what_is_wrong_is_refused_in_kafkas_words(message: bytes, password: str | None, sasl_judge: SaslJudge) -> None:
    """PlainSaslServer tells the client what is wrong, without a secret."""
    sasl_judge.ask("plain", "tim" if password is not None else "nobody", password or "x")
    with pytest.raises(SaslFailed) as failed:
        verify_plain(read_plain(message), password)
    with pytest.raises(JavaRefusedError) as java:
        sasl_judge.ask("to-server", message)

    assert failed.value.peer_message is not None
    assert str(java.value).endswith(failed.value.peer_message)


def test_no_password_is_shown() -> None:
    """A claim may stand in a traceback."""
    assert "tanstaaf" not in repr(read_plain(b"\0tim\0tanstaaf"))


@pytest.mark.parametrize(("user", "password"), [("", "p"), ("u", ""), ("u", "p\0q"), ("u\0", "p")])
def test_what_plain_cannot_say_is_not_sent(user: str, password: str) -> None:
    """A zero character would shift the fields."""
    with pytest.raises(SaslFailed):
        start_plain_client(user, password)
