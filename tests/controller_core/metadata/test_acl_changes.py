"""Creation and deletion of ACLs. Source: AclControlManager of Kafka."""

from collections.abc import Iterator
from itertools import count
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from controller_core.metadata.acl_changes import (
    TOO_MANY_DELETIONS,
    UNKNOWN_ENTRY_FILTER,
    UNKNOWN_PATTERN_FILTER,
    create_acls,
    delete_acls,
)
from controller_core.metadata.payloads import MAX_RECORDS
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import AccessControlEntryRecord
from kafka_metadata.replay import replay
from kafka_metadata.security_records import acl_binding
from kafka_node.authorization.acl import (
    Binding,
    BindingFilter,
    EntryFilter,
    Operation,
    PatternFilter,
    PatternType,
    ResourceType,
)
from tests.effort import examples
from tests.kafka_metadata.test_security_records import BINDINGS
from tests.twins.image_acls import acls_of

FILTERS = st.builds(
    BindingFilter,
    st.builds(
        PatternFilter,
        st.sampled_from([ResourceType.ANY, ResourceType.TOPIC, ResourceType.GROUP]),
        st.none() | st.text(max_size=2),
        st.sampled_from([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL]),
    ),
    st.builds(EntryFilter, host=st.sampled_from([None, "*"])),
)


def numbered() -> Iterator[UUID]:
    """Yield ids from 1."""
    return (UUID(int=number) for number in count(1))


def image_of(*bindings: Binding) -> MetadataImage:
    """Return an image with ACLs."""
    return replay(MetadataImage(), create_acls(MetadataImage(), bindings, numbered()).records)


@examples(50)
@given(st.lists(BINDINGS, max_size=6), st.lists(BINDINGS, max_size=6))
def test_acls_are_created_once(current: list[Binding], wanted: list[Binding]) -> None:
    """AclControlManager.createAcls: an ACL that exists, and a second one in the request, add no record."""
    image = image_of(*current)

    made = create_acls(image, wanted, numbered())

    assert [acl_binding(record) for record in made.records] == [
        binding for binding in dict.fromkeys(wanted) if binding not in current
    ]
    assert len(replay(image, made.records).acls) == len({*current, *wanted})


@examples(100)
@given(st.lists(BINDINGS, max_size=8), st.lists(FILTERS, max_size=3))
def test_filters_delete_what_they_find(current: list[Binding], filters: list[BindingFilter]) -> None:
    """AclControlManager.deleteAcls; an ACL is listed under each filter that selects it, and removed once."""
    image = image_of(*current)
    known = acls_of(image)

    made = delete_acls(image, filters)

    assert made.reply == [known.find(acl_filter) for acl_filter in filters]
    left = {acl_binding(record) for record in replay(image, made.records).acls.values()}
    assert left == {*current} - {binding for found in made.reply for binding in found}


def test_filters_with_unknown_numbers_are_refused() -> None:
    """AclControlManager.validateFilter."""
    unknown_pattern = BindingFilter(PatternFilter(pattern_type=PatternType.UNKNOWN))
    unknown_entry = BindingFilter(entry=EntryFilter(operation=Operation.UNKNOWN))

    made = delete_acls(MetadataImage(), [unknown_pattern, unknown_entry, BindingFilter()])

    assert made.reply == [UNKNOWN_PATTERN_FILTER, UNKNOWN_ENTRY_FILTER, []]


def test_more_deletions_than_one_batch_holds_are_refused() -> None:
    """AclControlManager.deleteAclsForFilter: a part of them would be missed."""
    acls = {
        UUID(int=number): AccessControlEntryRecord(UUID(int=number), 2, f"t{number}", 3, "User:alice", "*", 3, 3)
        for number in range(MAX_RECORDS + 1)
    }

    made = delete_acls(MetadataImage(acls=acls), [BindingFilter(), BindingFilter(PatternFilter(name="none"))])

    assert made.records == ()
    assert made.reply == [TOO_MANY_DELETIONS, TOO_MANY_DELETIONS]
