"""The authorizer's ACLs follow the committed image. Source: StandardAuthorizer, AclPublisher."""

from dataclasses import dataclass, replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from controller_core.shell.kraft.security import ImageAcls
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import AccessControlEntryRecord
from kafka_metadata.security_records import acl_record
from kafka_node.authorization.acl import Binding, BindingFilter, Operation, ResourceType
from kafka_node.authorization.authorizer import Rules, authorize
from tests.effort import examples
from tests.kafka_metadata.test_security_records import BINDINGS
from tests.twins.image_acls import acls_of

ALLOWED = AccessControlEntryRecord(UUID(int=1), 2, "topic", 3, "User:alice", "*", 3, 3)


@dataclass
class Controller:
    """A controller whose image a test sets."""

    committed_image: MetadataImage

    def set(self, *records: AccessControlEntryRecord) -> None:
        """Replace the ACLs."""
        self.committed_image = MetadataImage(acls={record.id: record for record in records})


def reads(acls: ImageAcls, topic: str = "topic") -> bool:
    """Return whether User:alice may read a topic."""
    return bool(authorize(acls.acls, Rules(), "User:alice", "::1", Operation.READ, ResourceType.TOPIC, topic))


@examples(50)
@given(st.lists(st.dictionaries(st.integers(1, 5), BINDINGS, max_size=4), max_size=4))
def test_the_acls_are_those_of_the_newest_image(steps: list[dict[int, Binding]]) -> None:
    """An ACL's id is new: differences of two images are additions and removals."""
    controller = Controller(MetadataImage())
    acls = ImageAcls(controller)
    for step, bindings in enumerate(steps):
        distinct = {binding: number for number, binding in bindings.items()}
        controller.set(*(acl_record(UUID(int=10 * step + number), binding) for binding, number in distinct.items()))

        assert acls.acls.find(BindingFilter()) == acls_of(controller.committed_image).find(BindingFilter())


def test_an_acl_of_a_later_version_locks_its_resource() -> None:
    """What it denies must not be allowed; it locks until the last one of the resource is removed."""
    unknown = replace(ALLOWED, id=UUID(int=2), operation=99)
    other = replace(unknown, id=UUID(int=3), permission_type=99)
    controller = Controller(MetadataImage())
    acls = ImageAcls(controller)
    found = []
    for records in [(ALLOWED,), (ALLOWED, unknown, other), (ALLOWED, other), (ALLOWED,)]:
        controller.set(*records)
        found.append(reads(acls))

    assert found == [True, False, False, True]


def test_an_acl_with_a_pattern_of_a_later_version_locks_all_resources_of_its_type() -> None:
    """It may match any of them."""
    controller = Controller(MetadataImage())
    controller.set(ALLOWED, replace(ALLOWED, id=UUID(int=2), resource_name="other", pattern_type=99))

    assert not reads(ImageAcls(controller))


def test_an_acl_for_an_unknown_type_of_resources_concerns_no_other_type() -> None:
    """No request of this version is about such a resource."""
    controller = Controller(MetadataImage())
    controller.set(ALLOWED, replace(ALLOWED, id=UUID(int=2), resource_type=99))

    assert reads(ImageAcls(controller))
