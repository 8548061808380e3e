"""Principals of client certificates: the formatted subject, and only of verified certificates."""

import ssl
from pathlib import Path

import pytest

from kafka_wire import ApiKey
from kafka_wire.net.client import Connection, ConnectionFailed
from kafka_wire.net.distinguished_name import subject_of
from kafka_wire.net.principal_rules import PrincipalRules
from lab.peers.authority import Authority, in_der
from tests.kafka_wire.net.sasl_peers import PrincipalHandler
from tests.kafka_wire.sasl.judge import SaslJudge

SUBJECTS = [
    "/CN=broker-1",
    "/C=DE/ST=Berlin/L=Berlin/O=Example/OU=Kafka/CN=broker-1.example",
    '/O=Example, Inc. "quoted" <a>;b+c=d#e\\\\f/CN=#first',
    "/CN= spaces around  ",
    "/CN=Jürgen Müller 中",
    "/emailAddress=a@example.org/CN=mail",
    "/DC=org/DC=example/UID=u1/CN=ldap",
    "/CN=a+OU=b/O=multi",
    "/serialNumber=42/street=Main Road 1/title=Dr/GN=Ada/CN=others",
    "/CN=" + "long" * 16,
]


@pytest.mark.java
def test_subjects_are_formatted_as_in_java(authority: Authority) -> None:
    """X500Principal.getName(), which ACLs refer to. Not the shared judge, because it is used only once."""
    certificates = [in_der(authority.sign("subject", subject)[0]) for subject in SUBJECTS]
    with SaslJudge() as judge:
        expected = [judge.ask("subject", certificate).decode() for certificate in certificates]

    assert [subject_of(certificate) for certificate in certificates] == expected


UTF8, PRINTABLE, T61, IA5, GENERAL, UNIVERSAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E
ACCEPTED = [
    pytest.param(UTF8, "é中".encode()[:5].ljust(8, b"."), id="UTF8String"),
    pytest.param(PRINTABLE, b"a_b@....", id="PrintableString with forbidden characters"),
    pytest.param(T61, b"one, two", id="T61String"),
    pytest.param(IA5, b"a@b.org.", id="IA5String"),
    pytest.param(GENERAL, b"general.", id="GeneralString"),
    pytest.param(UNIVERSAL, "ab".encode("utf-32-be"), id="UniversalString"),
    pytest.param(BMP, "abcd".encode("utf-16-be"), id="BMPString of ASCII"),
]
REJECTED = [
    pytest.param(UTF8, b"admin\xe9..", id="invalid UTF8String"),
    pytest.param(PRINTABLE, b"admin\xe9..", id="PrintableString outside ASCII"),
    pytest.param(T61, b"admin\xe9..", id="T61String in Latin-1"),
    pytest.param(T61, "adminé.".encode(), id="T61String that could be UTF-8"),
    pytest.param(IA5, b"\xff" * 8, id="IA5String outside ASCII"),
    pytest.param(GENERAL, b"\x80" * 8, id="GeneralString outside ASCII"),
    pytest.param(BMP, b"admin123", id="BMPString that Java reads as other characters"),
    pytest.param(BMP, "aéio".encode("utf-16-be"), id="BMPString that is not UTF-8"),
]


@pytest.fixture(scope="module")
def eight_characters(authority: Authority) -> bytes:
    """Return a certificate whose subject is a UTF8String of eight characters."""
    return in_der(authority.sign("eight", "/CN=abcdefgh")[0])


def with_subject(certificate: bytes, tag: int, value: bytes) -> bytes:
    """Replace the subject's string; the signature is not verified."""
    assert len(value) == 8
    found = b"\x0c\x08abcdefgh"
    assert certificate.count(found) == 1
    return certificate.replace(found, bytes((tag, 8)) + value)


@pytest.mark.java
def test_strings_of_all_types_are_formatted_as_in_java(eight_characters: bytes) -> None:
    """X500Principal interprets the bytes of every type as UTF-8, and formats UniversalStrings as hexadecimal."""
    certificates = [with_subject(eight_characters, *subject.values) for subject in ACCEPTED]
    with SaslJudge() as judge:
        expected = [judge.ask("subject", certificate).decode() for certificate in certificates]

    assert [subject_of(certificate) for certificate in certificates] == expected


@pytest.mark.parametrize(("tag", "value"), REJECTED)
def test_a_subject_that_cannot_be_decoded_without_loss_is_rejected(
    eight_characters: bytes, tag: int, value: bytes
) -> None:
    """Different subjects must not become the same text: one would get the permissions of the other."""
    with pytest.raises(ValueError, match="CN of the certificate's subject is"):
        subject_of(with_subject(eight_characters, tag, value))


async def test_a_peer_with_an_undecodable_subject_is_disconnected(
    authority: Authority, start_server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Although the certificate is verified: Java reads these three characters as admin1. The reason is logged."""
    only_bmp_strings = tmp_path / "openssl.cnf"
    only_bmp_strings.write_text("[req]\ndistinguished_name=empty\nstring_mask=MASK:0x800\n[empty]\n")
    shown = authority.sign("bmp", "/CN=\u6164\u6d69\u6e31", "-config", only_bmp_strings)
    assert b"admin1" in in_der(shown[0])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    handler = PrincipalHandler()
    server = await start_server(handler, ssl=context)
    client = ssl.create_default_context(cafile=str(authority.certificate))
    client.load_cert_chain(*shown)

    assert await _principal(server.port, client) is None
    assert handler.requests == []
    (reason,) = [vars(record)["reason"] for record in caplog.records if record.getMessage() == "Closed connection"]
    assert reason.startswith("the subject of the client certificate cannot be read: CN of the certificate's subject is")


def test_invalid_bytes_only_raise_value_error(authority: Authority) -> None:
    """Any truncation or change results in a ValueError or a name."""
    certificate = in_der(authority.sign("broken", "/CN=broken")[0])
    errors = 0
    for at in range(len(certificate)):
        for bad in (certificate[:at], certificate[:at] + b"\xff" + certificate[at + 1 :]):
            try:
                subject_of(bad)
            except ValueError:
                errors += 1

    assert errors > len(certificate)


@pytest.mark.parametrize(
    ("mode", "shown", "principal"),
    [
        (ssl.CERT_REQUIRED, True, "User:CN=client,O=Example"),
        (ssl.CERT_OPTIONAL, True, "User:CN=client,O=Example"),
        (ssl.CERT_OPTIONAL, False, "User:ANONYMOUS"),
        (ssl.CERT_NONE, True, "User:ANONYMOUS"),
        (ssl.CERT_REQUIRED, False, None),
    ],
)
async def test_the_principal_is_the_subject_of_a_verified_certificate(
    mode: ssl.VerifyMode, shown: bool, principal: str | None, authority: Authority, start_server
) -> None:
    """ssl.client.auth: required, requested and none."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = mode
    server = await start_server(PrincipalHandler(), ssl=context)
    if shown:
        tls = authority.client_context(subject="/O=Example/CN=client")
    else:
        tls = ssl.create_default_context(cafile=str(authority.certificate))

    assert principal == await _principal(server.port, tls)


@pytest.mark.parametrize(
    ("rules", "principal"),
    [("RULE:^CN=([^,]*),O=Example$/$1/U", "User:CLIENT"), ("RULE:^CN=nobody$/nobody/", None)],
    ids=["a rule matches", "no rule matches"],
)
async def test_the_principal_mapping_rules_are_applied(
    rules: str, principal: str | None, authority: Authority, start_server
) -> None:
    """ssl.principal.mapping.rules: a peer without a matching rule is disconnected (DefaultKafkaPrincipalBuilder)."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    server = await start_server(PrincipalHandler(), ssl=context, principal_rules=PrincipalRules.parse(rules))

    assert principal == await _principal(server.port, authority.client_context(subject="/O=Example/CN=client"))


async def test_a_certificate_of_an_unknown_authority_is_rejected(
    authority: Authority, start_server, tmp_path: Path
) -> None:
    """It is signed by an authority that the server does not trust."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    server = await start_server(PrincipalHandler(), ssl=context)
    tls = ssl.create_default_context(cafile=str(authority.certificate))
    tls.load_cert_chain(*Authority(tmp_path).sign("unknown", "/O=Example/CN=client"))

    assert await _principal(server.port, tls) is None


async def _principal(port: int, tls: ssl.SSLContext) -> str | None:
    """Return the principal that the server sees; None if it closed the connection."""
    try:
        connection = await Connection.open("127.0.0.1", port, client_id="tests", ssl=tls)
    except ConnectionFailed:
        return None
    try:
        principal: str = (await connection.call(ApiKey.METADATA, {"topics": []}))["cluster_id"]
    except ConnectionFailed:
        return None
    finally:
        await connection.close()
    return principal
