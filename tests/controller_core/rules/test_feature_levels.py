"""Levels of a KRaft cluster's features. Kafka's own tool is the judge in test_format_judged.py."""

import pytest

from controller_core.rules.feature_levels import FeatureError, new_cluster_levels, parse_level, parse_release


def levels(release: int | None = None, **requested: int) -> dict[str, int]:
    """Return the levels of a cluster with voters in the log; `_` for `.` in names."""
    named = {name.replace("_", "."): level for name, level in requested.items()}
    return new_cluster_levels(named, release=release, has_static_voters=False, allows_unstable=False)


def test_a_new_cluster_has_the_latest_levels() -> None:
    """Those of stock Kafka 4.3.1."""
    assert levels() == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "kraft.version": 1,
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_an_older_release_has_the_levels_of_its_time() -> None:
    """But dynamic voters, which the quorum itself needs."""
    assert levels(parse_release("3.9", allows_unstable=False)) == {
        "eligible.leader.replicas.version": 0,
        "group.version": 0,
        "kraft.version": 1,
        "metadata.version": 21,
        "share.version": 0,
        "streams.version": 0,
        "transaction.version": 0,
    }


def test_a_release_name_is_cut_after_its_second_number() -> None:
    """MetadataVersion.fromVersionString."""
    names = ("3.5", "3.5.9", "3.5.x.y", "3.5-IV1")

    assert [parse_release(name, allows_unstable=False) for name in names] == [11, 11, 11, 10]


def test_unreleased_levels_need_consent() -> None:
    """unstable.feature.versions.enable."""
    assert parse_release("4.4-IV0", allows_unstable=True) == 31
    with pytest.raises(FeatureError, match="Unknown"):
        parse_release("4.4-IV0", allows_unstable=False)
    with pytest.raises(FeatureError, match="is not yet stable"):
        levels(metadata_version=31)


def test_a_level_that_needs_a_newer_metadata_version_is_refused() -> None:
    """Eligible leader replicas need 4.0-IV1."""
    with pytest.raises(FeatureError, match="because it depends on"):
        levels(22, eligible_leader_replicas_version=1)


def test_a_feature_and_its_level_are_separated_by_the_first_equals_sign() -> None:
    """Spaces around them are ignored."""
    assert parse_level(" group.version = 1 ") == ("group.version", 1)
