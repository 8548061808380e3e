"""TLS contexts from PEM in memory: the server's certificate and host name are verified.

OpenSSL reads a client's certificate only from files, so these are written where only this process can read them,
and removed before anything is sent. Its messages quote no key; messages about PEM are nevertheless replaced.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from kafka_operator.admin.port import BadCredentialsError
from kafka_operator.resources.security import ClientCertificate, Security

MAX_PEM_LENGTH = 512 * 1024
"""Characters: twice the bundle of all public authorities, and half of what a Secret can hold."""


def make_context(security: Security) -> ssl.SSLContext | None:
    """Return the context of a connection, None without TLS; BadCredentialsError when a part of it cannot be used."""
    if not security.tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies certificates and names
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if security.ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, security.ca)
    if security.certificate is not None:
        _show(context, security.certificate)
    return context


def _trust(context: ssl.SSLContext, ca: str) -> None:
    if len(ca) > MAX_PEM_LENGTH:
        raise BadCredentialsError("ca", f"longer than {MAX_PEM_LENGTH} characters.")
    try:
        context.load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError):
        message = "not a certificate in PEM. Expected -----BEGIN CERTIFICATE----- blocks, one after another."
        raise BadCredentialsError("ca", message) from None


def _show(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    for part, text in (("certificate", certificate.chain), ("key", certificate.private_key)):
        if len(text) > MAX_PEM_LENGTH:
            raise BadCredentialsError(part, f"longer than {MAX_PEM_LENGTH} characters.")
    if "ENCRYPTED" in certificate.private_key:
        message = "the key has a passphrase. Store it without one: the Secret protects it."
        raise BadCredentialsError("key", message)
    if "PRIVATE KEY-----" not in certificate.private_key:
        raise BadCredentialsError("key", "not a private key in PEM.")
    if "-----BEGIN CERTIFICATE-----" not in certificate.chain:
        raise BadCredentialsError("certificate", "not a certificate in PEM.")
    with tempfile.TemporaryDirectory(prefix="steward-") as folder:  # of mode 0700
        chain, key = Path(folder, "chain"), Path(folder, "key")
        for path, text in ((chain, certificate.chain), (key, certificate.private_key)):
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
        try:
            context.load_cert_chain(chain, key, password=_no_passphrase)
        except (ssl.SSLError, ValueError) as error:
            mismatch = getattr(error, "reason", "") == "KEY_VALUES_MISMATCH"
            message = "the key does not match the certificate." if mismatch else "certificate or key is not valid PEM."
            raise BadCredentialsError("key" if mismatch else "certificate", message) from None


def _no_passphrase() -> str:
    """Replace OpenSSL's passphrase prompt on the terminal."""
    return ""
