"""DescribeClientQuotas from an image. Source: ClientQuotasImage.describe, ClientQuotaRequestManagerTest."""

import pytest

from kafka_metadata.described_quotas import MatchType, describe_client_quotas
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import ClientQuotaRecord, QuotaEntityPart
from kafka_metadata.replay import replay
from kafka_wire import Body, ErrorCode

ENTITIES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "alice": (("user", "alice"),),
    "alice with a": (("user", "alice"), ("client-id", "a")),
    "default user": (("user", None),),
    "a": (("client-id", "a"),),
    "address": (("ip", "192.0.2.1"),),
}
IMAGE = replay(
    MetadataImage(),
    [
        ClientQuotaRecord(
            tuple(QuotaEntityPart(*part) for part in parts),
            "connection_creation_rate" if name == "address" else "producer_byte_rate",
            5.0,
        )
        for name, parts in ENTITIES.items()
    ],
)


def component(kind: str, match_type: int, match: str | None = None) -> Body:
    """Return a component of a filter."""
    return {"entity_type": kind, "match_type": match_type, "match": match}


def found(*components: Body, strict: bool = False) -> list[str]:
    """Return the names of the entities that a filter selects."""
    answer = describe_client_quotas(IMAGE, {"components": list(components), "strict": strict})
    assert answer["error_code"] == ErrorCode.NONE
    names = {frozenset(parts): name for name, parts in ENTITIES.items()}
    return [
        names[frozenset((part["entity_type"], part["entity_name"]) for part in entry["entity"])]
        for entry in answer["entries"]
    ]


def test_a_filter_without_components_selects_all() -> None:
    """With `strict` it selects none: no entity is without parts."""
    assert found() == list(ENTITIES)
    assert found(strict=True) == []


def test_names_defaults_and_types_select_entities() -> None:
    """An entity may have more parts, unless the filter is strict."""
    assert found(component("user", MatchType.EXACT, "alice")) == ["alice", "alice with a"]
    assert found(component("user", MatchType.EXACT, "alice"), strict=True) == ["alice"]
    assert found(component("user", MatchType.DEFAULT)) == ["default user"]
    assert found(component("user", MatchType.SPECIFIED), component("client-id", MatchType.SPECIFIED)) == [
        "alice with a"
    ]


def test_an_entry_has_its_parts_and_values() -> None:
    """The parts are ordered by type."""
    body = {
        "components": [component("client-id", MatchType.EXACT, "a"), component("user", MatchType.SPECIFIED)],
        "strict": True,
    }
    assert describe_client_quotas(IMAGE, body)["entries"] == [
        {
            "entity": [
                {"entity_type": "client-id", "entity_name": "a"},
                {"entity_type": "user", "entity_name": "alice"},
            ],
            "values": [{"key": "producer_byte_rate", "value": 5.0}],
        }
    ]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([component("", MatchType.EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([component("group", MatchType.EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
        ([component("user", 7)], ErrorCode.INVALID_REQUEST),
        ([component("user", MatchType.EXACT)], ErrorCode.INVALID_REQUEST),
        ([component("user", MatchType.DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([component("user", MatchType.SPECIFIED), component("user", MatchType.DEFAULT)], ErrorCode.INVALID_REQUEST),
        ([component("ip", MatchType.SPECIFIED), component("user", MatchType.DEFAULT)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_filter_is_refused(components: list[Body], code: ErrorCode) -> None:
    """The answer has an error and no entries."""
    answer = describe_client_quotas(IMAGE, {"components": components, "strict": False})
    assert (answer["error_code"], answer["entries"]) == (code, None)
