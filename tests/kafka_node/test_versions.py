"""ApiVersions: our own versions, and for all else what every live broker serves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_node.versions import (
    BETWEEN_SERVERS,
    NO_BROKER,
    BrokerVersions,
    api_versions_body,
    names_its_software_well,
    read_versions,
    shared,
    unsupported_version_body,
)
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode

_ranges = st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6)


@given(st.lists(_ranges, min_size=1, max_size=4))
def test_a_version_is_shared_exactly_when_every_broker_serves_it(every: list[dict[int, tuple[int, int]]]) -> None:
    """The dumb twin: look at every version of every key."""
    found = shared([BrokerVersions(ranges) for ranges in every]).ranges
    for key in range(6):
        for version in range(10):
            by_all = all(key in one and one[key][0] <= version <= one[key][1] for one in every)
            assert by_all == (key in found and found[key][0] <= version <= found[key][1])


def test_finalized_features_are_those_of_the_newest_epoch() -> None:
    """They are the cluster's own; a broker may only be late to hear of them. Supported ones are each broker's."""
    old = BrokerVersions({}, {"metadata.version": (1, 20), "old": (1, 1)}, 3, {"metadata.version": (1, 20)})
    new = BrokerVersions({}, {"metadata.version": (7, 25)}, 4, {"metadata.version": (1, 21)})

    assert shared([old, new]) == BrokerVersions({}, {"metadata.version": (7, 20)}, 4, {"metadata.version": (1, 21)})


def test_without_brokers_there_is_nothing_to_share() -> None:
    """The controller may be up before the first broker."""
    assert shared([]) == NO_BROKER


def test_our_own_versions_stand_before_the_brokers() -> None:
    """What we answer ourselves is ours to say; keys that only newer brokers know are offered too."""
    brokers = BrokerVersions({ApiKey.FETCH: (4, 17), ApiKey.CREATE_TOPICS: (2, 7), 1_234: (0, 1)})
    body = api_versions_body({ApiKey.API_VERSIONS: (0, 4), ApiKey.CREATE_TOPICS: (0, 5)}, brokers, 4)

    expected = {int(ApiKey.FETCH): (4, 17), int(ApiKey.API_VERSIONS): (0, 4), int(ApiKey.CREATE_TOPICS): (0, 5)}
    assert read_versions({**body, "finalized_features_epoch": -1}).ranges == {**expected, 1_234: (0, 1)}


def test_requests_between_servers_are_not_offered_unless_they_are_ours() -> None:
    """LeaderAndIsr, say: a broker serves it, and we would never relay it."""
    brokers = BrokerVersions(dict.fromkeys(BETWEEN_SERVERS, (0, 1)))
    body = api_versions_body({ApiKey.ALTER_PARTITION: (0, 3)}, brokers, 4)

    assert [entry["api_key"] for entry in body["api_keys"]] == [ApiKey.ALTER_PARTITION]


@pytest.mark.parametrize(("version", "names"), [(3, ["metadata.version"]), (4, ["kraft.version", "metadata.version"])])
def test_a_feature_that_starts_at_zero_is_told_from_version_4(version: int, names: list[str]) -> None:
    """KAFKA-17011: older readers refuse the whole answer over a 0."""
    brokers = BrokerVersions({}, {"kraft.version": (0, 1), "metadata.version": (1, 21)})
    body = api_versions_body({}, brokers, version)

    assert names == [feature["name"] for feature in body["supported_features"]]


@pytest.mark.parametrize("version", range(codec.versions("ApiVersionsResponse")[1] + 1))
def test_the_answer_fits_every_version_of_the_response(version: int) -> None:
    """Older versions leave the features out."""
    brokers = BrokerVersions({ApiKey.FETCH: (4, 17)}, {"metadata.version": (1, 21)}, 9, {"metadata.version": (1, 21)})
    body = api_versions_body({ApiKey.API_VERSIONS: (0, 4)}, brokers, version)
    frame = codec.encode_response(ApiKey.API_VERSIONS, version, 5, body)
    _, found = codec.decode_response(ApiKey.API_VERSIONS, version, frame)

    assert read_versions(found).ranges == {ApiKey.FETCH: (4, 17), ApiKey.API_VERSIONS: (0, 4)}
    assert (9 if version >= 3 else -1) == read_versions(found).finalized_features_epoch


def test_an_unknown_version_is_answered_with_the_versions_of_api_versions() -> None:
    """KIP-511, as Kafka's ApiVersionsRequest.getErrorResponse answers."""
    expected = [{"api_key": 18, "min_version": 0, "max_version": 4}]
    body = unsupported_version_body((0, 4))

    assert (body["error_code"], body["api_keys"]) == (ErrorCode.UNSUPPORTED_VERSION, expected)


@pytest.mark.parametrize(
    ("name", "version", "fine"),
    [
        ("apache-kafka-java", 3, True),
        ("a", 3, True),
        ("", 3, False),
        ("-a", 3, False),
        ("a.", 3, False),
        ("a b", 3, False),
        ("a\n", 3, False),
        ("", 2, True),
    ],
)
def test_client_software_has_a_name_by_the_rule(name: str, version: int, fine: bool) -> None:
    """KIP-511; before version 3 clients tell none."""
    assert fine == names_its_software_well({"client_software_name": name, "client_software_version": "3.9.2"}, version)
