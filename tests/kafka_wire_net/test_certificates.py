"""Certificates of clients: whom they name, and that nobody is called by one that is not verified."""

import ssl
from pathlib import Path

import pytest

from kafka_wire.api import ApiKey
from kafka_wire.net.client import Connection, ConnectionFailed
from kafka_wire.net.distinguished_name import subject_of
from kafka_wire.net.principal_rules import PrincipalRules
from tests.kafka_wire_net.authority import Authority, in_der
from tests.kafka_wire_net.sasl_peers import WhoAmI
from tests.kafka_wire_sasl.judge import SaslJudge

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


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """One for all."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.java
def test_subjects_are_written_as_java_writes_them(authority: Authority) -> None:
    """X500Principal.getName(), which ACLs are about; a judge of its own, for it is asked once."""
    certificates = [in_der(authority.sign("subject", subject)[0]) for subject in SUBJECTS]
    with SaslJudge() as judge:
        expected = [judge.ask("subject", certificate).decode() for certificate in certificates]

    assert [subject_of(certificate) for certificate in certificates] == expected


UTF8, PRINTABLE, T61, IA5, GENERAL, UNIVERSAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E
ACCEPTED = [
    pytest.param(UTF8, "é中".encode()[:5].ljust(8, b"."), id="UTF8String"),
    pytest.param(PRINTABLE, b"a_b@....", id="PrintableString, with what it should not have"),
    pytest.param(T61, b"one, two", id="T61String"),
    pytest.param(IA5, b"a@b.org.", id="IA5String"),
    pytest.param(GENERAL, b"general.", id="GeneralString"),
    pytest.param(UNIVERSAL, "ab".encode("utf-32-be"), id="UniversalString"),
    pytest.param(BMP, "abcd".encode("utf-16-be"), id="BMPString of ASCII"),
]
REFUSED = [
    pytest.param(UTF8, b"admin\xe9..", id="UTF8String that is none"),
    pytest.param(PRINTABLE, b"admin\xe9..", id="PrintableString outside ASCII"),
    pytest.param(T61, b"admin\xe9..", id="T61String in Latin-1"),
    pytest.param(T61, "adminé.".encode(), id="T61String that could be UTF-8"),
    pytest.param(IA5, b"\xff" * 8, id="IA5String outside ASCII"),
    pytest.param(GENERAL, b"\x80" * 8, id="GeneralString outside ASCII"),
    pytest.param(BMP, b"admin123", id="BMPString that Java reads as other letters"),
    pytest.param(BMP, "aéio".encode("utf-16-be"), id="BMPString that is no UTF-8"),
]


@pytest.fixture(scope="module")
def eight_letters(authority: Authority) -> bytes:
    """A certificate whose subject is a UTF8String of eight letters."""
    return in_der(authority.sign("eight", "/CN=abcdefgh")[0])


def with_subject(certificate: bytes, tag: int, value: bytes) -> bytes:
    """Write another string into it; nobody verifies the signature."""
    assert len(value) == 8
    found = b"\x0c\x08abcdefgh"
    assert certificate.count(found) == 1
    return certificate.replace(found, bytes((tag, 8)) + value)


@pytest.mark.java
def test_strings_of_all_types_are_written_as_java_writes_them(eight_letters: bytes) -> None:
    """X500Principal takes the bytes of every type for UTF-8, and writes UniversalStrings in hexadecimal."""
    certificates = [with_subject(eight_letters, *one.values) for one in ACCEPTED]
    with SaslJudge() as judge:
        expected = [judge.ask("subject", certificate).decode() for certificate in certificates]

    assert [subject_of(certificate) for certificate in certificates] == expected


@pytest.mark.parametrize(("tag", "value"), REFUSED)
def test_a_subject_that_cannot_be_decoded_without_loss_is_refused(eight_letters: bytes, tag: int, value: bytes) -> None:
    """Different subjects must not become one text: one would have the other's rights."""
    with pytest.raises(ValueError, match="CN of the certificate's subject is"):
        subject_of(with_subject(eight_letters, tag, value))


async def test_a_peer_whose_subject_cannot_be_decoded_is_not_let_in(
    authority: Authority, start_server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The certificate is verified, and still names nobody: Java reads these three characters as admin1. The log says why."""
    only_bmp_strings = tmp_path / "openssl.cnf"
    only_bmp_strings.write_text("[req]\ndistinguished_name=empty\nstring_mask=MASK:0x800\n[empty]\n")
    shown = authority.sign("bmp", "/CN=\u6164\u6d69\u6e31", "-config", only_bmp_strings)
    assert b"admin1" in in_der(shown[0])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    handler = WhoAmI()
    server = await start_server(handler, ssl=context)
    client = ssl.create_default_context(cafile=str(authority.certificate))
    client.load_cert_chain(*shown)

    assert await _who(server.port, client) is None
    assert handler.asked == []
    (reason,) = [record.reason for record in caplog.records if record.getMessage() == "Closed connection"]
    assert reason.startswith("the subject of the client certificate cannot be read: CN of the certificate's subject is")


def test_no_bytes_break_the_reader(authority: Authority) -> None:
    """Whatever is cut or changed is a ValueError, or a name."""
    certificate = in_der(authority.sign("broken", "/CN=broken")[0])
    told = 0
    for at in range(len(certificate)):
        for bad in (certificate[:at], certificate[:at] + b"\xff" + certificate[at + 1 :]):
            try:
                subject_of(bad)
            except ValueError:
                told += 1

    assert told > len(certificate)


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
async def test_a_peer_is_called_by_its_verified_certificate(
    mode: ssl.VerifyMode, shown: bool, principal: str | None, authority: Authority, start_server
) -> None:
    """ssl.client.auth: required, requested and none."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = mode
    server = await start_server(WhoAmI(), ssl=context)
    if shown:
        tls = authority.client_context(subject="/O=Example/CN=client")
    else:
        tls = ssl.create_default_context(cafile=str(authority.certificate))

    assert principal == await _who(server.port, tls)


@pytest.mark.parametrize(
    ("rules", "principal"),
    [("RULE:^CN=([^,]*),O=Example$/$1/U", "User:CLIENT"), ("RULE:^CN=nobody$/nobody/", None)],
    ids=["a rule fits", "no rule fits"],
)
async def test_a_peer_is_called_by_the_rules(
    rules: str, principal: str | None, authority: Authority, start_server
) -> None:
    """ssl.principal.mapping.rules: whom no rule names is not let in (DefaultKafkaPrincipalBuilder)."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    server = await start_server(WhoAmI(), ssl=context, principal_rules=PrincipalRules.parse(rules))

    assert principal == await _who(server.port, authority.client_context(subject="/O=Example/CN=client"))


async def test_a_strangers_certificate_is_refused(authority: Authority, start_server, tmp_path: Path) -> None:
    """Signed by an authority that nobody here trusts."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.sign("server", "/CN=localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    server = await start_server(WhoAmI(), ssl=context)
    tls = ssl.create_default_context(cafile=str(authority.certificate))
    tls.load_cert_chain(*Authority(tmp_path).sign("stranger", "/O=Example/CN=client"))

    assert await _who(server.port, tls) is None


async def _who(port: int, tls: ssl.SSLContext) -> str | None:
    """Ask who we are; None: we were thrown out."""
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
