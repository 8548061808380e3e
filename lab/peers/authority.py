"""Certificate authority of a test or a benchmark: OpenSSL's command line in a folder."""

import ssl
import subprocess
from pathlib import Path

DAYS = "2"


class Authority:
    """Signs certificates of localhost and of clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "authority.pem"
        self._key = folder / "authority.key"
        self._run(
            "req", "-x509", *_key_options(self._key), "-subj", "/CN=an authority of tests", "-out", self.certificate
        )

    def sign(self, name: str, subject: str, *options: object) -> tuple[Path, Path]:
        """Return the paths of a new certificate and its key, which are also valid for localhost. `options` are OpenSSL's."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        self._run(
            "req",
            "-x509",
            *_key_options(key),
            "-utf8",
            *("-subj", subject),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-CA", self.certificate, "-CAkey", self._key, "-out", certificate),
            *options,
        )
        return certificate, key

    def store(self, name: str, subject: str) -> Path:
        """Return the path of a PEM file with a new key and its certificate, as Kafka's `ssl.keystore.location` takes it."""
        certificate, key = self.sign(name, subject)
        path = self.folder / f"{name}-store.pem"
        path.write_text(key.read_text() + certificate.read_text())
        return path

    def client_context(self, name: str = "client", subject: str = "/CN=client") -> ssl.SSLContext:
        """Return a context that trusts this authority and presents a client certificate."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.load_cert_chain(*self.sign(name, subject))
        return context

    @staticmethod
    def _run(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def _key_options(key: Path) -> tuple[str, ...]:
    options = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS)
    return *options, "-keyout", str(key)


def in_der(certificate: Path) -> bytes:
    """Return a certificate in DER."""
    return ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii"))
