"""Addresses in the settings of a quorum. The initial controllers are the cases of Kafka's DynamicVoterTest and DynamicVotersTest."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.shell.quorum.endpoints import (
    Address,
    InitialController,
    format_uuid,
    parse_initial_controllers,
    parse_uuid,
)
from controller_core.shell.quorum.setting_rules import SettingError

ID = "__0IZ-0DRNazJ49kCZ1EMQ"


def test_an_initial_controller_has_an_id_an_address_and_a_directory_id() -> None:
    """IPv6 addresses are in brackets."""
    text = f"100@192.128.0.100:800:{ID},5@[2001:4860:4860::8888]:8020:{ID}"

    assert parse_initial_controllers(text) == (
        InitialController(5, Address("2001:4860:4860::8888", 8020), parse_uuid(ID)),
        InitialController(100, Address("192.128.0.100", 800), parse_uuid(ID)),
    )


@pytest.mark.parametrize(
    "text",
    [
        f"localhost:8020:{ID}",
        f"@localhost:8020:{ID}",
        f"-1@localhost:8020:{ID}",
        f"blah@localhost:8020:{ID}",
        "2@",
        f"5@[2001:4860:4860::8888:8020:{ID}",
        f"2@localhost8020{ID}",
        f"5@[2001:4860:4860::8888]8020:{ID}",
        f"5@[2001:4860:4860::8888]:8020{ID}",
        f"5@[2001:4860:4860::8888]:8020m:{ID}",
        f"5@[2001:4860:4860::8888]:-8020:{ID}",
        f"5@[2001:4860:4860::8888]:666666:{ID}",
        "5@[2001:4860:4860::8888]:8020:%_0IZ-0DRNazJ49kCZ1EMQ",
        "5@[2001:4860:4860::8888]:8020:",
        "",
        f"1@a:1:{ID},1@b:2:{ID}",
    ],
)
def test_another_form_is_refused(text: str) -> None:
    """With the entry in the message."""
    with pytest.raises(SettingError):
        parse_initial_controllers(text)


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.uuids(), min_size=1))
def test_initial_controllers_are_read_as_they_are_written(ids: dict[int, uuid.UUID]) -> None:
    """In the order of their ids."""
    written = [InitialController(node_id, Address("::1", 65_535), directory) for node_id, directory in ids.items()]

    read = parse_initial_controllers(",".join(map(str, written)))

    assert read == tuple(sorted(written, key=lambda voter: voter.node_id))


@given(st.uuids())
def test_an_id_is_read_as_it_is_written(value: uuid.UUID) -> None:
    """Kafka's Uuid.toString and Uuid.fromString."""
    assert parse_uuid(format_uuid(value)) == value


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA!", "ÄAAAAAAAAAAAAAAAAAAAAA", ID + ID])
def test_another_text_is_no_id(text: str) -> None:
    """An id has 16 bytes."""
    with pytest.raises(SettingError, match="is not an id in Kafka's form"):
        parse_uuid(text)
