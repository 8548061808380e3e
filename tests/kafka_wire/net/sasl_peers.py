"""Handler and credentials of SASL servers in tests."""

import asyncio
from collections.abc import Mapping

from kafka_wire import ApiKey, Body, codec
from kafka_wire.net.negotiation import highest_api_versions
from kafka_wire.net.peer import Peer
from kafka_wire.sasl.plain import PLAIN
from kafka_wire.sasl.scram_decoy import CredentialShape
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS, ScramCredential, make_credential

SALT = b"a salt of tests"
MECHANISMS = (PLAIN, *SCRAM_MECHANISMS)


class Users:
    """Credentials in memory, by name and password."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.passwords = dict(passwords)

    async def plain_password(self, user: str) -> str | None:
        """Return a password."""
        await asyncio.sleep(0)
        return self.passwords.get(user)

    async def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Create the credential that a server would store."""
        await asyncio.sleep(0)
        if user not in self.passwords:
            return None
        scram = SCRAM_MECHANISMS[mechanism]
        return make_credential(scram, scram.salted_password(self.passwords[user], SALT, 4096), SALT, 4096)

    async def scram_shapes(self, _mechanism: str) -> Mapping[CredentialShape, int]:
        """Return the shape of all credentials."""
        return {CredentialShape(4096, len(SALT), salt_is_number=False): len(self.passwords)}


class PrincipalHandler:
    """A handler that serves ApiVersions, and Metadata with the caller's principal as the cluster's id."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []
        """Principals and API keys."""
        self.port = 0
        """Port of the broker in Metadata responses."""

    async def __call__(self, peer: Peer, frame: bytes) -> bytes:
        """Handle one request."""
        header, _ = codec.decode_request(frame)
        key = ApiKey(header.api_key)
        self.requests.append((peer.principal, key))
        return codec.encode_response(key, header.api_version, header.correlation_id, self._body(key, peer))

    def _body(self, key: ApiKey, peer: Peer) -> Body:
        if key is ApiKey.API_VERSIONS:
            served = {
                ApiKey.API_VERSIONS: (0, highest_api_versions()),
                ApiKey.METADATA: (0, 12),
                ApiKey.SASL_HANDSHAKE: (0, 1),
                ApiKey.SASL_AUTHENTICATE: (0, 2),
            }
            rows = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in served.items()]
            return {"api_keys": rows}
        assert key is ApiKey.METADATA
        broker = {"node_id": 1, "host": "127.0.0.1", "port": self.port}
        return {"cluster_id": peer.principal, "controller_id": 1, "brokers": [broker], "topics": []}
