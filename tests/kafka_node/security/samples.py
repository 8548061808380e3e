"""Security settings with files, and an empty source of SCRAM credentials."""

from collections.abc import Mapping
from pathlib import Path

from kafka_node.security.settings import SecuritySettings, TlsFiles
from kafka_wire.sasl.scram_decoy import CredentialShape
from kafka_wire.sasl.scram_keys import ScramCredential
from lab.peers.authority import Authority


class NoScramUsers:
    """Implements CredentialSource. `asked` has the requested users."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def credential(self, _mechanism: str, user: str) -> ScramCredential | None:
        """Return no credential."""
        self.asked.append(user)
        return None

    async def shapes(self, _mechanism: str) -> Mapping[CredentialShape, int]:
        """Return no shapes."""
        return {}


def security_files(authority: Authority, folder: Path) -> SecuritySettings:
    """Write certificates and credentials to files, for listeners and for connections to brokers."""
    certificate, key = authority.sign("server", "/CN=controller")
    users, password = folder / "users", folder / "password"
    users.write_text("controller:own-password\nalice:hers\n")
    password.write_text("own-password\n")
    for path in (users, password):
        path.chmod(0o600)
    return SecuritySettings(
        tls=TlsFiles(certificate=certificate, key=key, ca=authority.certificate),
        sasl_mechanisms=("PLAIN",),
        sasl_users_files=(users,),
        broker_tls=TlsFiles(ca=authority.certificate),
        broker_sasl_mechanism="PLAIN",
        broker_sasl_username="controller",
        broker_sasl_password_file=password,
    )
