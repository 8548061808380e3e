"""TLS contexts from files: version 1.2 or later, the peer verified, host names checked.

The files are read at the start, and again when they are renewed (renewal).
"""

import ssl

from kafka_node.security.settings import ClientAuth, TlsFiles

_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


def listener_context(files: TlsFiles, client_auth: ClientAuth) -> ssl.SSLContext:
    """Make the context of listeners. Raises ValueError, which names the file."""
    if files.certificate is None:
        raise ValueError("a listener with TLS needs a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load(context, files)
    context.verify_mode = _VERIFY[client_auth]
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Make the context of connections to other processes. Raises ValueError, which names the file."""
    context = ssl.create_default_context() if files.ca is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load(context, files)
    return context


def load(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Load certificate and authorities from files. Raises ValueError, which names the file."""
    try:
        if files.ca is not None:
            context.load_verify_locations(cafile=files.ca)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"the authorities in {files.ca} cannot be read: {error}") from error
    try:
        if files.certificate is not None:
            # A key with a passphrase is refused: OpenSSL would ask the terminal for it.
            context.load_cert_chain(files.certificate, files.key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise ValueError(f"the certificate {files.certificate} with its key cannot be read: {error}") from error


def _no_passphrase() -> str:
    raise ValueError("keys with a passphrase are not supported")
