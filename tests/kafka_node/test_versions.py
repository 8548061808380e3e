"""ApiVersions: the process's own versions, and for other APIs those that every live broker supports."""

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
from kafka_wire import ApiKey, ErrorCode, codec

_ranges = st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6)


@given(st.lists(_ranges, min_size=1, max_size=4))
def test_version_is_shared_if_every_broker_supports_it(every: list[dict[int, tuple[int, int]]]) -> None:
    """The plain twin checks every version of every key."""
    found = shared([BrokerVersions(ranges) for ranges in every]).ranges
    for key in range(6):
        for version in range(10):
            by_all = all(key in ranges and ranges[key][0] <= version <= ranges[key][1] for ranges in every)
            assert by_all == (key in found and found[key][0] <= version <= found[key][1])


def test_finalized_features_have_the_newest_epoch() -> None:
    """They belong to the cluster, and a broker may know an older epoch. Supported features belong to each broker."""
    old = BrokerVersions({}, {"metadata.version": (1, 20), "old": (1, 1)}, 3, {"metadata.version": (1, 20)})
    new = BrokerVersions({}, {"metadata.version": (7, 25)}, 4, {"metadata.version": (1, 21)})

    assert shared([old, new]) == BrokerVersions({}, {"metadata.version": (7, 20)}, 4, {"metadata.version": (1, 21)})


def test_no_version_is_shared_without_brokers() -> None:
    """The controller may start before the first broker."""
    assert shared([]) == NO_BROKER


def test_own_versions_replace_those_of_brokers() -> None:
    """For APIs that the process answers itself. Keys that only newer brokers know are offered too."""
    brokers = BrokerVersions({ApiKey.FETCH: (4, 17), ApiKey.CREATE_TOPICS: (2, 7), 1_234: (0, 1)})
    body = api_versions_body({ApiKey.API_VERSIONS: (0, 4), ApiKey.CREATE_TOPICS: (0, 5)}, brokers, 4)

    expected = {int(ApiKey.FETCH): (4, 17), int(ApiKey.API_VERSIONS): (0, 4), int(ApiKey.CREATE_TOPICS): (0, 5)}
    assert read_versions({**body, "finalized_features_epoch": -1}).ranges == {**expected, 1_234: (0, 1)}


def test_requests_between_servers_are_offered_only_if_answered_here() -> None:
    """For example LeaderAndIsr: brokers support it, but it is never relayed."""
    brokers = BrokerVersions(dict.fromkeys(BETWEEN_SERVERS, (0, 1)))
    body = api_versions_body({ApiKey.ALTER_PARTITION: (0, 3)}, brokers, 4)

    assert [entry["api_key"] for entry in body["api_keys"]] == [ApiKey.ALTER_PARTITION]


@pytest.mark.parametrize(("version", "names"), [(3, ["metadata.version"]), (4, ["kraft.version", "metadata.version"])])
def test_feature_with_minimum_zero_is_listed_from_version_4(version: int, names: list[str]) -> None:
    """KAFKA-17011: older clients reject a response with a minimum of 0."""
    brokers = BrokerVersions({}, {"kraft.version": (0, 1), "metadata.version": (1, 21)})
    body = api_versions_body({}, brokers, version)

    assert [feature["name"] for feature in body["supported_features"]] == names


@pytest.mark.parametrize("version", range(codec.versions("ApiVersionsResponse")[1] + 1))
def test_body_encodes_in_every_version(version: int) -> None:
    """Older versions have no features."""
    brokers = BrokerVersions({ApiKey.FETCH: (4, 17)}, {"metadata.version": (1, 21)}, 9, {"metadata.version": (1, 21)})
    body = api_versions_body({ApiKey.API_VERSIONS: (0, 4)}, brokers, version)
    frame = codec.encode_response(ApiKey.API_VERSIONS, version, 5, body)
    _, found = codec.decode_response(ApiKey.API_VERSIONS, version, frame)

    assert read_versions(found).ranges == {ApiKey.FETCH: (4, 17), ApiKey.API_VERSIONS: (0, 4)}
    assert read_versions(found).finalized_features_epoch == (9 if version >= 3 else -1)


def test_unknown_version_gets_the_versions_of_api_versions() -> None:
    """KIP-511, as in Kafka's ApiVersionsRequest.getErrorResponse."""
    expected = [{"api_key": 18, "min_version": 0, "max_version": 4}]
    body = unsupported_version_body((0, 4))

    assert (body["error_code"], body["api_keys"]) == (ErrorCode.UNSUPPORTED_VERSION, expected)


@pytest.mark.parametrize(
    ("name", "version", "valid"),
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
def test_client_software_name_is_checked(name: str, version: int, valid: bool) -> None:
    """KIP-511; before version 3 the request has no name."""
    body = {"client_software_name": name, "client_software_version": "3.9.2"}
    assert names_its_software_well(body, version) == valid
