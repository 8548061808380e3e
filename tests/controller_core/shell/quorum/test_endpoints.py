"""Addresses in the settings of a quorum. The initial controllers are the cases of Kafka's DynamicVoterTest and DynamicVotersTest."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.shell.quorum.endpoints import (
    InitialController,
    parse_initial_controllers,
    parse_uuid,
)
from kafka_node.configs.setting_rules import SettingError
from kafka_node.security.endpoints import Address

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


def test_another_text_is_no_id() -> None:
    """The message names a command that draws one."""
    with pytest.raises(SettingError) as refused:
        parse_uuid("AAAA")

    assert str(refused.value) == (
        "'AAAA' is not an id of 22 characters in URL-safe Base64, as `steward random-uuid` prints it."
    )
