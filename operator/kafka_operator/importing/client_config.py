"""Parser of the file for --command-config of Kafka's tools, limited to connection properties.

    security.protocol                     PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
    sasl.mechanism, sasl.jaas.config      PLAIN and SCRAM, with user and password; OAUTHBEARER
    sasl.mechanism=AWS_MSK_IAM            with the AWS identity of this process, or a role (awsRoleArn) that it assumes
    sasl.oauthbearer.*                    token endpoint (https, or file with a token), client id, client secret, scope
    ssl.truststore.*, ssl.keystore.*      of type PEM, in files or in the properties themselves

What is verified cannot be switched off: an empty ssl.endpoint.identification.algorithm is refused. Other properties are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kafka_node.security.aws_identity import AwsIdentity
from kafka_node.security.msk_iam import MECHANISM as AWS_MSK_IAM
from kafka_operator.resources.security import (
    MECHANISMS,
    PLAINTEXT,
    BearerToken,
    ClientCertificate,
    ClientCredentials,
    Login,
    SaslLogin,
    Security,
)
from kafka_wire.sasl.oauthbearer import OAUTHBEARER

MAX_FILE_LENGTH = 1_048_576
"""Characters of a file of properties or PEM; a store of certificates has some hundred thousand at most."""

PROTOCOLS = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
JAAS_OPTION = re.compile(r'([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - the name of a property
CLIENT_ID, CLIENT_SECRET = (
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
)
SCOPE = "sasl.oauthbearer.scope"
MSK_SERVER = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com:\d+$")
PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)


class ClientConfigError(Exception):
    """The file cannot be used; the message names the property, and never a value that may be secret."""


def read_client_config(path: Path | None, servers: Sequence[str]) -> Security:
    """Read a file, PLAINTEXT without one; ClientConfigError when it cannot be used. The names of `servers` have the region of an Amazon MSK cluster."""
    return PLAINTEXT if path is None else security_of(parse_properties(_read(path)), servers)


def security_of(properties: Mapping[str, str], servers: Sequence[str] = ()) -> Security:
    """Return how a cluster is reached."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ClientConfigError(f"security.protocol is not one of {', '.join(sorted(PROTOCOLS))}")
    tls = protocol.endswith("SSL")
    if tls and properties.get("ssl.endpoint.identification.algorithm", "https") == "":
        raise ClientConfigError(
            "ssl.endpoint.identification.algorithm is empty: names in certificates are always verified; remove the line, and "
            "connect to the brokers by a name that their certificate contains"
        )
    return Security(
        tls=tls,
        ca=_ca(properties) if tls else None,
        certificate=_certificate(properties) if tls else None,
        login=_login(properties, servers) if protocol.startswith("SASL") else None,
    )


def parse_properties(text: str) -> dict[str, str]:
    r"""Parse what java.util.Properties writes and reads; its last word on a key counts.

    >>> parse_properties("# why\na = b\nc:d\\\n  e\nu=\\u00fc\n")
    {'a': 'b', 'c': 'de', 'u': 'ü'}
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\s=:\\])*)\s*[=:]?\s*(.*)", line, re.DOTALL)
        assert match is not None, "both parts may be empty"
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _logical_lines(text: str) -> Iterator[str]:
    whole = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if not whole and (not stripped or stripped[0] in "#!"):
            continue
        whole += stripped
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        yield whole
        whole = ""
    if whole:
        yield whole


def _unescaped(text: str) -> str:
    special = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else special.get(match[2], match[2]),
        text,
        flags=re.DOTALL,
    )


def _login(properties: Mapping[str, str], servers: Sequence[str]) -> SaslLogin:
    mechanism = properties.get("sasl.mechanism", "")
    options = _jaas_options(properties.get("sasl.jaas.config", ""))
    if mechanism == OAUTHBEARER:
        return _token_login(properties, options)
    if mechanism == AWS_MSK_IAM:
        return AwsIdentity(_msk_region(properties, servers), role_arn=options.get("awsRoleArn"))
    if mechanism not in MECHANISMS.values():
        known = ", ".join([*MECHANISMS.values(), OAUTHBEARER, AWS_MSK_IAM])
        raise ClientConfigError(f"sasl.mechanism is not one of {known}")
    if not options.get("username") or not options.get("password"):
        raise ClientConfigError("sasl.jaas.config has no username or no password")
    return Login(mechanism, options["username"], options["password"])


def _msk_region(properties: Mapping[str, str], servers: Sequence[str]) -> str:
    """Return the region in the servers' names; a token is only sent over TLS."""
    if properties.get("security.protocol", "").upper() != "SASL_SSL":
        raise ClientConfigError(f"sasl.mechanism {AWS_MSK_IAM} requires security.protocol=SASL_SSL")
    regions = {found[1] for server in servers if (found := MSK_SERVER.search(server))}
    if len(regions) != 1:
        raise ClientConfigError(
            f"sasl.mechanism {AWS_MSK_IAM} requires bootstrap servers of one region, with names like "
            "b-1.shop.abc123.c2.kafka.eu-central-1.amazonaws.com:9098"
        )
    return regions.pop()


def _token_login(properties: Mapping[str, str], options: Mapping[str, str]) -> BearerToken | ClientCredentials:
    """Return the token of a file, or the client that requests tokens.

    Client and scope have properties since Kafka 4.1 (KIP-1139), which Kafka prefers to the options of sasl.jaas.config (KIP-768).
    """
    url = properties.get(TOKEN_URL, "")
    if (scheme := urlsplit(url).scheme) == "file":
        return BearerToken(_read(Path(unquote(urlsplit(url).path))).strip())
    if scheme != "https":
        raise ClientConfigError(f"{TOKEN_URL} is neither an https address nor a file address of a token")
    client_id = properties.get(CLIENT_ID) or options.get("clientId")
    client_secret = properties.get(CLIENT_SECRET) or options.get("clientSecret")
    if not client_id or not client_secret:
        raise ClientConfigError(
            f"{CLIENT_ID} or {CLIENT_SECRET} is missing; sasl.jaas.config has no clientId and clientSecret either"
        )
    scope = properties.get(SCOPE) or options.get("scope")
    return ClientCredentials(url, client_id, client_secret, scope, _ca(options))


def _jaas_options(text: str) -> dict[str, str]:
    r"""Return the options of a login module.

    >>> _jaas_options(r'x.Module required username="a\"b" serviceName=kafka;')
    {'username': 'a"b', 'serviceName': 'kafka'}
    """
    found = JAAS_OPTION.findall(text)
    return {name: re.sub(r"\\(.)", r"\1", quoted or plain) for name, quoted, plain in found}


def _ca(properties: Mapping[str, str]) -> str | None:
    return _store(properties, "truststore", ("certificates",))


def _certificate(properties: Mapping[str, str]) -> ClientCertificate | None:
    text = _store(properties, "keystore", ("certificate.chain", "key"))
    if text is None:
        return None
    blocks = [match[0] for match in PEM_BLOCK.finditer(text)]
    keys = [block for block in blocks if "PRIVATE KEY" in block]
    chain = [block for block in blocks if "PRIVATE KEY" not in block]
    if len(keys) != 1 or not chain:
        raise ClientConfigError("ssl.keystore has to hold one private key and the certificates of its chain, in PEM")
    return ClientCertificate("\n".join(chain) + "\n", keys[0] + "\n")


def _store(properties: Mapping[str, str], store: str, parts: tuple[str, ...]) -> str | None:
    """Return the PEM of a store, from its properties or its file; None where there is none."""
    inline = [properties[f"ssl.{store}.{part}"] for part in parts if f"ssl.{store}.{part}" in properties]
    location = properties.get(f"ssl.{store}.location")
    if not inline and location is None:
        return None
    if properties.get(f"ssl.{store}.type", "JKS").upper() != "PEM":
        raise ClientConfigError(
            f"ssl.{store}.type is not PEM, the only supported type; `keytool -exportcert -rfc` or `openssl pkcs12` write PEM"
        )
    return "\n".join(inline) if inline else _read(Path(location or ""))


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_FILE_LENGTH + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ClientConfigError(f"{path} cannot be read: {reason}") from None
    if len(text) > MAX_FILE_LENGTH:
        raise ClientConfigError(f"{path} is longer than {MAX_FILE_LENGTH} characters")
    return text
