"""Conversations of a client with a standalone broker, over TCP: golden scripts in the folder `golden`, with Kafka's responses."""

from pathlib import Path

import pytest

from tests.golden_scripts import assert_golden, golden_scripts, golden_text
from tests.light_broker.serving import client_of, standalone
from tests.light_broker.shell.conversation import Names, converse


@pytest.mark.shows("F63")
@pytest.mark.parametrize("script", golden_scripts(__file__), ids=lambda path: path.stem)
async def test_a_client_gets_these_responses(script: Path, tmp_path: Path) -> None:
    """Versions, error codes and fields of Kafka 4.3.1."""
    names = Names()
    async with standalone(tmp_path) as process, client_of(process) as client:
        names.mask(process.ports["PLAINTEXT"], "PORT")
        names.mask(process.broker.view.cluster_id, "CLUSTER")
        actual = await converse(client, golden_text(script), names)

    assert_golden(script, actual)
