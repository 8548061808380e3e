"""Manifests: encoding, the manifest in use, expired files, and invalid manifests."""

from __future__ import annotations

import pytest

from balance_analytics.model.manifest import (
    EMPTY,
    FOLDER,
    KEPT_MS,
    DataFile,
    FoundFile,
    Manifest,
    ManifestError,
    decode,
    encode,
    expired,
    lost,
    name_of,
)

NOW_MS = 1_800_000_000_000
OLD_MS = NOW_MS - 2 * KEPT_MS
FIRST = EMPTY.followed_by("a", OLD_MS, {"2026-01-01": (DataFile("v=a/date=2026-01-01/x.parquet", 10),)}, keeps=True)
SECOND = FIRST.followed_by("b", NOW_MS, {"2026-01-02": (DataFile("v=b/date=2026-01-02/y.parquet", 20),)}, keeps=True)


def test_decoding_returns_the_encoded_manifest() -> None:
    """From its name and its text."""
    assert decode(name_of(SECOND), encode(SECOND)) == SECOND


def test_a_part_replaces_only_the_part_of_its_name() -> None:
    """For example a recomputed day. Without `keeps` the other parts are removed."""
    again = {"2026-01-01": (DataFile("v=c/date=2026-01-01/z.parquet", 30),)}

    assert SECOND.followed_by("c", NOW_MS, again, keeps=True).parts == {**SECOND.parts, **again}
    assert SECOND.followed_by("c", NOW_MS, again, keeps=False).parts == again


@pytest.mark.parametrize(
    "text",
    [
        encode(SECOND)[:-10],
        "",
        "[]",
        '{"format": 2, "written_ms": 0, "parts": {}}',
        '{"format": 1, "parts": {}}',
        '{"format": 1, "written_ms": 0, "parts": {"a": [["../x", 1]]}}',
        '{"format": 1, "written_ms": 0, "parts": {"a": [["/x", 1]]}}',
        '{"format": 1, "written_ms": 0, "parts": {"a": [["v=1/../../x", 1]]}}',
        '{"format": 1, "written_ms": 0, "parts": {"a": [["x"]]}}',
        '{"format": 1, "written_ms": 0, "parts": {"a": 5}}',
    ],
    ids=["cut", "empty", "a list", "format", "no time", "above", "absolute", "climbs", "no size", "no list"],
)
def test_invalid_manifests_are_rejected(text: str) -> None:
    """The error names the file."""
    with pytest.raises(ManifestError, match=r"00000002-b\.json"):
        decode("00000002-b.json", text)


def test_deleted_and_truncated_files_are_lost() -> None:
    """Files are compared by path and size."""
    cut = [FoundFile("v=a/date=2026-01-01/x.parquet", 9, OLD_MS)]

    assert lost(SECOND, cut) == ["v=a/date=2026-01-01/x.parquet", "v=b/date=2026-01-02/y.parquet"]
    assert lost(SECOND, [FoundFile(file.path, file.size, OLD_MS) for file in SECOND.files()]) == []


def test_files_that_no_manifest_lists_expire_after_a_day() -> None:
    """Files of a killed run and of a recomputed day, but not those of the newest manifest."""
    third = SECOND.followed_by(
        "c", NOW_MS, {"2026-01-01": (DataFile("v=c/date=2026-01-01/z.parquet", 30),)}, keeps=True
    )
    manifests = [FIRST, SECOND, third]
    named = {file.path for manifest in manifests for file in manifest.files()}
    names = {f"{FOLDER}/{name_of(manifest)}" for manifest in manifests}
    found = [FoundFile(path, 1, OLD_MS) for path in sorted({*named, *names, "v=k/killed.parquet"})]
    found.append(FoundFile("v=n/running.parquet", 1, NOW_MS))

    assert expired(found, manifests, NOW_MS) == ["v=k/killed.parquet"]
    assert expired(found, manifests, NOW_MS + KEPT_MS) == [
        f"{FOLDER}/{name_of(FIRST)}",
        f"{FOLDER}/{name_of(SECOND)}",
        "v=a/date=2026-01-01/x.parquet",
        "v=k/killed.parquet",
        "v=n/running.parquet",
    ]


def test_readers_choose_the_same_of_two_manifests_with_one_number() -> None:
    """Two runs published at the same time. The files of the other one expire like those of a killed run."""
    one, other = Manifest(1, "a", OLD_MS, {}), Manifest(1, "b", OLD_MS, {"x": (DataFile("v=b/x.parquet", 1),)})
    found = [FoundFile(f"{FOLDER}/{name_of(manifest)}", 1, OLD_MS) for manifest in (other, one)]

    assert expired(found, [other, one], NOW_MS) == [f"{FOLDER}/{name_of(one)}"]
