"""SCRAM: the exchange of the RFCs, exchanges with Kafka's classes, and failures."""

import base64
import dataclasses

import pytest

from kafka_wire.sasl import scram_keys
from kafka_wire.sasl.scram_client import start_scram_client
from kafka_wire.sasl.scram_decoy import decoy_credential
from kafka_wire.sasl.scram_keys import (
    SCRAM_MECHANISMS,
    SCRAM_SHA_256,
    ScramCredential,
    ScramMechanism,
    decode_credential,
    encode_credential,
    make_credential,
)
from kafka_wire.sasl.scram_messages import MAX_MESSAGE_BYTES, read_client_first
from kafka_wire.sasl.scram_server import start_scram_server
from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step
from tests.kafka_wire.sasl.judge import JavaRefusedError, SaslJudge

SALT = b"sixteen bytes ok"
DECOY_KEY = b"of tests only"
BOTH = pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS.values(), ids=lambda one: one.name)


def credential_of(
    mechanism: ScramMechanism, password: str = "pencil", salt: bytes = SALT, iterations: int = 4096
) -> ScramCredential:
    """Create the credential that a server stores."""
    return make_credential(mechanism, mechanism.salted_password(password, salt, iterations), salt, iterations)


def serve(mechanism: ScramMechanism, message: bytes, credential: ScramCredential | None, nonce: str = "server") -> Step:
    """Handle a client's first message."""
    decoy = decoy_credential(mechanism, "alice", DECOY_KEY, {})
    return start_scram_server(mechanism, read_client_first(message), credential, nonce, decoy)


def test_the_exchange_of_the_rfc() -> None:
    """RFC 7677, section 3: all messages of both sides."""
    nonce = "rOprNGfwEbeRWgbNEkqO"
    server_nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    client = start_scram_client(SCRAM_SHA_256, "user", "pencil", nonce)
    server = serve(SCRAM_SHA_256, client.reply, credential_of(SCRAM_SHA_256, salt=salt), server_nonce)
    proof = client.state.take(server.reply)
    end = server.state.take(proof.reply)

    assert client.reply == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert server.reply == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert (
        proof.reply
        == b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert end.reply == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert end.state == Authenticated("user")
    assert proof.state.take(end.reply) == Step(None, Authenticated("user"))


@BOTH
@pytest.mark.java
@pytest.mark.parametrize(("user", "password"), [("alice", "pencil"), ("a=b,c", "päss wörd,=\u212b")])
def test_the_client_with_kafkas_server(
    mechanism: ScramMechanism, user: str, password: str, sasl_judge: SaslJudge
) -> None:
    """ScramSaslServer; a password is only encoded as UTF-8 (no SASLprep), a name is escaped."""
    sasl_judge.ask("server", mechanism.name, user, encode_credential(credential_of(mechanism, password)))
    step = start_scram_client(mechanism, user, password, "ournonce")
    for _ in range(2):
        step = step.state.take(sasl_judge.ask("to-server", step.reply))

    assert step == Step(None, Authenticated(user))
    assert user == sasl_judge.ask("user").decode()


@BOTH
@pytest.mark.java
@pytest.mark.parametrize(("user", "password"), [("alice", "pencil"), ("a=b,c", "päss wörd,=\u212b")])
def test_the_server_with_kafkas_client(
    mechanism: ScramMechanism, user: str, password: str, sasl_judge: SaslJudge
) -> None:
    """ScramSaslClient accepts the server's proof."""
    step = serve(
        mechanism, sasl_judge.ask("client", mechanism.name, user, password), credential_of(mechanism, password)
    )
    step = step.state.take(sasl_judge.ask("to-client", step.reply))

    assert sasl_judge.ask("to-client", step.reply) == b""
    assert step.state == Authenticated(user)


@BOTH
@pytest.mark.java
def test_credentials_equal_kafkas_byte_for_byte(mechanism: ScramMechanism, sasl_judge: SaslJudge) -> None:
    """ScramFormatter.generateCredential and ScramCredentialUtils.credentialToString."""
    salted = mechanism.salted_password("pencil", SALT, 8192)
    credential = make_credential(mechanism, salted, SALT, 8192)

    assert salted == sasl_judge.ask("salted", mechanism.name, "pencil", SALT, "8192")
    assert sasl_judge.ask("credential", mechanism.name, salted, SALT, "8192").decode() == encode_credential(credential)
    assert credential == decode_credential(encode_credential(credential))


@BOTH
@pytest.mark.java
def test_kafkas_server_rejects_a_wrong_password(mechanism: ScramMechanism, sasl_judge: SaslJudge) -> None:
    """This verifies the Java program itself."""
    sasl_judge.ask("server", mechanism.name, "alice", encode_credential(credential_of(mechanism)))
    step = start_scram_client(mechanism, "alice", "wrong", "ournonce")
    step = step.state.take(sasl_judge.ask("to-server", step.reply))
    with pytest.raises(JavaRefusedError, match="Invalid client credentials"):
        sasl_judge.ask("to-server", step.reply)


@BOTH
@pytest.mark.parametrize("known", [True, False])
def test_a_wrong_password_and_an_unknown_user_fail_alike(mechanism: ScramMechanism, known: bool) -> None:
    """RFC 5802, section 9: the failure does not reveal which users exist."""
    credential = credential_of(mechanism) if known else None
    client = start_scram_client(mechanism, "alice", "guess", "n1")
    server = serve(mechanism, client.reply, credential)
    again = serve(mechanism, client.reply, credential)

    assert again.reply == server.reply
    with pytest.raises(SaslFailed, match="does not exist, or its password is wrong") as failed:
        server.state.take(client.state.take(server.reply).reply)
    assert failed.value.peer_message is None


def test_the_proof_of_one_exchange_is_invalid_in_another() -> None:
    """The server's nonce is new each time."""
    credential = credential_of(SCRAM_SHA_256)
    client = start_scram_client(SCRAM_SHA_256, "alice", "pencil", "n1")
    proof = client.state.take(serve(SCRAM_SHA_256, client.reply, credential, "first").reply).reply
    with pytest.raises(SaslFailed, match="nonce"):
        serve(SCRAM_SHA_256, client.reply, credential, "second").state.take(proof)


def test_a_server_without_the_credential_is_detected() -> None:
    """RFC 5802: authentication is mutual."""
    credential = credential_of(SCRAM_SHA_256)
    liar = dataclasses.replace(credential, server_key=b"x" * 32)
    client = start_scram_client(SCRAM_SHA_256, "alice", "pencil", "n1")
    server = serve(SCRAM_SHA_256, client.reply, liar)
    proof = client.state.take(server.reply)
    with pytest.raises(SaslFailed, match="signature is wrong"):
        proof.state.take(server.state.take(proof.reply).reply)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "nonce"),
        (b"r=n1,s=c2FsdA==,i=4096", "nonce"),
        (b"r=n1x,s=c2FsdA==,i=4095", "4095 iterations"),
        (b"r=n1x,s=c2FsdA==,i=16385", "16385 iterations"),
        (b"r=n1x,s=c2FsdA==,i=99999999999", "malformed"),
        (b"r=n1x,s=" + b"c2Fs" * 1000 + b",i=4096", "salt has 3000 bytes"),
        (b"m=x,r=n1x,s=c2FsdA==,i=4096", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"r=n1x,s=c2FsdA==,i=4096," + b"x" * MAX_MESSAGE_BYTES, "the limit is"),
    ],
)
def test_a_client_rejects_invalid_server_messages(message: bytes, why: str) -> None:
    """Kafka's limits of iterations, and Steward's limits of salts and messages."""
    client = start_scram_client(SCRAM_SHA_256, "alice", "pencil", "n1")
    with pytest.raises(SaslFailed, match=why):
        client.state.take(message)


def test_a_client_reports_the_servers_error() -> None:
    """RFC 5802: e=."""
    client = start_scram_client(SCRAM_SHA_256, "alice", "pencil", "n1")
    proof = client.state.take(serve(SCRAM_SHA_256, client.reply, credential_of(SCRAM_SHA_256)).reply)
    with pytest.raises(SaslFailed, match="unknown-user"):
        proof.state.take(b"e=unknown-user")


@pytest.mark.parametrize(
    "message", [b"", b"y,,n=a,r=b", b"p=tls-unique,,n=a,r=b", b"n,,m=x,n=a,r=b", b"n,,n=a=b,r=c", b"n,,n=,r=c", b"\xff"]
)
def test_a_server_rejects_invalid_client_messages(message: bytes) -> None:
    """There is no channel binding, `m` must be rejected, and names are escaped."""
    with pytest.raises(SaslFailed, match="malformed"):
        read_client_first(message)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b"c=biws", b"c=eSws"), "channel binding"),
        ((b"r=n1server", b"r=n1serves"), "nonce"),
        ((b",p=", b",p=AAAA"), "proof has"),
        ((b",p=", b",q="), "malformed"),
    ],
)
def test_a_server_rejects_a_changed_final_message(change: tuple[bytes, bytes], why: str) -> None:
    """Each part of the final message is checked."""
    client = start_scram_client(SCRAM_SHA_256, "alice", "pencil", "n1")
    server = serve(SCRAM_SHA_256, client.reply, credential_of(SCRAM_SHA_256))
    with pytest.raises(SaslFailed, match=why):
        server.state.take(client.state.take(server.reply).reply.replace(*change))


def test_another_authorization_id_is_rejected() -> None:
    """ScramSaslServer: a user cannot act as another one."""
    with pytest.raises(SaslFailed, match="authorization id that is different"):
        serve(SCRAM_SHA_256, b"n,a=admin,n=alice,r=n1", credential_of(SCRAM_SHA_256))


def test_a_weak_credential_is_rejected_like_a_missing_one() -> None:
    """ScramSaslServer rejects a stored credential of fewer than 4096 iterations; the peer receives a decoy."""
    client = start_scram_client(SCRAM_SHA_256, "alice", "pencil", "n1")
    server = serve(SCRAM_SHA_256, client.reply, credential_of(SCRAM_SHA_256, iterations=100))
    assert server.reply == serve(SCRAM_SHA_256, client.reply, None).reply
    with pytest.raises(SaslFailed, match="100 iterations"):
        server.state.take(client.state.take(server.reply).reply)


@pytest.mark.parametrize(
    "text",
    ["", "salt=eA==", "salt=eA==,stored_key=eA==,server_key=e,iterations=4096", "=x,salt=eA==", "iterations=x,y"],
)
def test_the_error_for_a_malformed_credential_does_not_contain_it(text: str) -> None:
    """ZooKeeper may contain anything, and the text is a secret."""
    with pytest.raises(ValueError, match="SCRAM credential") as refused:
        scram_keys.decode_credential(text)
    assert not text or text not in str(refused.value)


@BOTH
def test_representations_contain_no_secret(mechanism: ScramMechanism) -> None:
    """States may appear in tracebacks."""
    client = start_scram_client(mechanism, "alice", "pencil", "n1")
    credential = credential_of(mechanism)
    server = serve(mechanism, client.reply, credential)

    assert "pencil" not in repr(client)
    assert repr(credential.stored_key) not in repr(server)
    assert repr(credential.server_key) not in repr(server)
