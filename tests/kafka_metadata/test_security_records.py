"""Conversions of ACLs and SCRAM credentials. Source: StandardAcl and ScramImage of Kafka."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import AccessControlEntryRecord
from kafka_metadata.replay import replay
from kafka_metadata.security_records import (
    acl_binding,
    acl_record,
    scram_credentials_of,
    scram_record,
)
from kafka_node.authorization.acl import Binding, Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.authorization.authorizer import Rules, authorize
from kafka_wire.sasl.scram_keys import SCRAM_SHA_256, SCRAM_SHA_512, make_credential
from tests.effort import examples
from tests.twins.image_acls import acls_of

ID = UUID(int=7)
DENIED = AccessControlEntryRecord(ID, 2, "topic", 3, "User:alice", "*", 3, 2)
"""User:alice may not read the topic."""
BINDINGS = st.builds(
    Binding,
    st.builds(
        Pattern,
        st.sampled_from([resource_type for resource_type in ResourceType if resource_type > ResourceType.ANY]),
        st.text(min_size=1, max_size=5),
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        Entry,
        st.just("User:alice"),
        st.sampled_from(["*", "::1"]),
        st.sampled_from([operation for operation in Operation if operation > Operation.ANY]),
        st.sampled_from([Permission.ALLOW, Permission.DENY]),
    ),
)


@examples(50)
@given(BINDINGS)
def test_an_acl_is_the_same_after_its_record(binding: Binding) -> None:
    """The numbers are those of the wire."""
    assert acl_binding(acl_record(ID, binding)) == binding


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
@pytest.mark.parametrize("number", [-1, 0, 1, 99])
def test_an_acl_with_an_unknown_number_is_refused(field: str, number: int) -> None:
    """Without it the authorizer could allow what it denies."""
    with pytest.raises(MetadataError, match=f"The ACL {ID} cannot be applied: .*; run a newer version of Steward"):
        acl_binding(replace(DENIED, **{field: number}))


def test_a_filters_pattern_type_is_refused() -> None:
    """AclControlManager.validateNewAcl: only LITERAL and PREFIXED."""
    with pytest.raises(MetadataError, match="2 is no PatternType of an ACL"):
        acl_binding(replace(DENIED, pattern_type=PatternType.MATCH))


def test_the_authorizer_judges_by_the_acls_of_an_image() -> None:
    """A denial counts more than a permission for the same pattern."""
    allowed = replace(DENIED, id=UUID(int=8), permission_type=3, operation=2)
    acls = acls_of(replay(MetadataImage(), [DENIED, allowed]))

    assert not authorize(acls, Rules(), "User:alice", "::1", Operation.READ, ResourceType.TOPIC, "topic")
    assert authorize(acls, Rules(), "User:alice", "::1", Operation.WRITE, ResourceType.TOPIC, "topic")


def test_a_credential_is_found_by_mechanism_and_user() -> None:
    """Each mechanism has its own credentials."""
    credential = make_credential(SCRAM_SHA_256, b"salted password", b"salt", 4096)
    image = replay(MetadataImage(), [scram_record("alice", SCRAM_SHA_256, credential)])

    assert scram_credentials_of(image, SCRAM_SHA_256) == {"alice": credential}
    assert scram_credentials_of(image, SCRAM_SHA_512) == {}
