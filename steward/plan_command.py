"""`steward plan`: what a person needs to have a plan carried out by its digest, without a cluster.

steward plan digest plan.json                  prints the digest, as spec.planFrom.digest and status.planDigest have it
steward plan configmaps plan.json --name NAME  prints ConfigMaps that hold it, for `kubectl apply --server-side -f -`

Without --server-side kubectl keeps a copy of what it sent in an annotation, which may have 262,144 bytes: a large plan does not fit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

plan_app = typer.Typer(no_args_is_help=True, help="Read a plan of kafka-reassign-partitions.sh.")

PlanFile = Annotated[Path, typer.Argument(help="JSON as kafka-reassign-partitions.sh reads it; - for the input.")]

STANDARD_INPUT = Path("-")


@plan_app.command("digest")
def digest(file: PlanFile) -> None:
    """Print a plan's digest."""
    typer.echo(_read(file).digest)


@plan_app.command("configmaps")
def config_maps(
    file: PlanFile,
    name: Annotated[str, typer.Option(help="Name of the ConfigMaps; each gets a number behind it.")],
    namespace: Annotated[str | None, typer.Option(help="Their namespace; kubectl's own if it is not given.")] = None,
) -> None:
    """Print ConfigMaps that hold a plan, for kubectl apply --server-side -f - (a plain apply refuses large ones).

    As a comment for people the lines that name them in a Reassignment go to the other output.
    """
    from kafka_operator.decide.plan_packing import packed_document  # noqa: PLC0415 - as in `main`

    document = _read(file)
    items: list[dict[str, Any]] = []
    for number, data in enumerate(packed_document(document)):
        metadata = {"name": f"{name}-{number}"} | ({"namespace": namespace} if namespace else {})
        items.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data})
    typer.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    names = ", ".join(item["metadata"]["name"] for item in items)
    typer.echo(f"planFrom:\n  configMaps: [{names}]\n  digest: {document.digest}", err=True)


def _read(file: Path) -> Any:
    from kafka_operator.decide.plan_document import (  # noqa: PLC0415
        MAX_DOCUMENT_BYTES,
        DocumentError,
        read_document,
    )

    try:
        if file == STANDARD_INPUT:
            data = typer.get_binary_stream("stdin").read(MAX_DOCUMENT_BYTES + 1)
        else:
            with file.open("rb") as opened:
                data = opened.read(MAX_DOCUMENT_BYTES + 1)
        return read_document(data)
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}.") from error
    except DocumentError as error:
        raise typer.BadParameter(str(error)) from error
