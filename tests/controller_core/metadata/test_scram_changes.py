"""Changes of SCRAM credentials. Source: ScramControlManager of Kafka."""

from typing import Any

from controller_core.metadata.scram_changes import SCRAM_UNSUPPORTED, alter_user_scram_credentials
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import METADATA_VERSION
from kafka_metadata.records import FeatureLevelRecord, RemoveUserScramCredentialRecord
from kafka_metadata.replay import replay
from kafka_metadata.security_records import scram_configs_of, scram_credentials_of, scram_record
from kafka_node.scram_requests import MISSING_CREDENTIAL, TOO_FEW_ITERATIONS
from kafka_wire import Body
from kafka_wire.sasl.scram_keys import SCRAM_SHA_256, SCRAM_SHA_512, make_credential

CREDENTIAL = make_credential(SCRAM_SHA_256, b"salted", b"salt", 4096)
IMAGE = replay(
    MetadataImage(), [FeatureLevelRecord(METADATA_VERSION, 30), scram_record("alice", SCRAM_SHA_256, CREDENTIAL)]
)


def upsertion(name: str, mechanism: int, iterations: int = 4096) -> Body:
    """Return an upsertion of a request."""
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": b"salt",
        "salted_password": b"salted",
    }


def request(*upsertions: Body, deletions: tuple[tuple[str, int], ...] = ()) -> dict[str, Any]:
    """Return a request."""
    listed = [{"name": name, "mechanism": mechanism} for name, mechanism in deletions]
    return {"upsertions": list(upsertions), "deletions": listed}


def test_a_credential_is_derived_from_the_salted_password() -> None:
    """ScramControlManager.finishUpsertion; an upsertion that changes nothing adds no record."""
    made = alter_user_scram_credentials(IMAGE, request(upsertion("bob", 2), upsertion("alice", 1)))

    expected = make_credential(SCRAM_SHA_512, b"salted", b"salt", 4096)
    assert made.records == (scram_record("bob", SCRAM_SHA_512, expected),)
    assert made.reply == {"bob": None, "alice": None}
    assert scram_credentials_of(replay(IMAGE, made.records), SCRAM_SHA_512) == {"bob": expected}


def test_a_refused_alteration_of_a_user_refuses_the_others_of_it() -> None:
    """KIP-554: users succeed or fail separately."""
    body = request(upsertion("alice", 2), upsertion("bob", 1, 100), deletions=(("alice", 1), ("carol", 1)))

    made = alter_user_scram_credentials(IMAGE, body)

    assert made.reply == {"alice": None, "bob": TOO_FEW_ITERATIONS, "carol": MISSING_CREDENTIAL}
    assert made.records[0] == RemoveUserScramCredentialRecord("alice", 1)
    assert list(scram_configs_of(replay(IMAGE, made.records))["alice"]) == ["SCRAM-SHA-512"]


def test_a_metadata_version_without_scram_refuses_all() -> None:
    """MetadataVersion.isScramSupported."""
    image = replay(MetadataImage(), [FeatureLevelRecord(METADATA_VERSION, 10)])

    made = alter_user_scram_credentials(image, request(upsertion("bob", 1)))

    assert made.records == ()
    assert made.reply == {"bob": SCRAM_UNSUPPORTED}
