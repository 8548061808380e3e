"""`steward plan`: the digest of a plan file, and ConfigMaps that contain the plan. Needs no cluster.

steward plan digest plan.json                  prints the digest, as in spec.planFrom.digest and status.planDigest
steward plan configmaps plan.json --name NAME  prints ConfigMaps for `kubectl apply --server-side -f -`

Without --server-side kubectl stores a copy of the object in an annotation, which is limited to 262,144 bytes: too small for a
large plan.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

plan_app = typer.Typer(
    no_args_is_help=True, help="Print the digest or the ConfigMaps of a plan of kafka-reassign-partitions.sh."
)

PlanFile = Annotated[Path, typer.Argument(help="JSON file in the format of kafka-reassign-partitions.sh; - for stdin.")]

STANDARD_INPUT = Path("-")


@plan_app.command("digest")
def digest(file: PlanFile) -> None:
    """Print the digest of a plan."""
    typer.echo(_read(file).digest)


@plan_app.command("configmaps")
def config_maps(
    file: PlanFile,
    name: Annotated[str, typer.Option(help="Name prefix of the ConfigMaps; each gets a number as suffix.")],
    namespace: Annotated[
        str | None, typer.Option(help="Namespace of the ConfigMaps; by default that of kubectl.")
    ] = None,
) -> None:
    """Print ConfigMaps that contain a plan, for kubectl apply --server-side -f - (without it, kubectl rejects large ones).

    The planFrom lines for the Reassignment are printed to stderr.
    """
    from kafka_operator.decide.plans.plan_packing import packed_document  # noqa: PLC0415 - as in `main`

    document = _read(file)
    items: list[dict[str, Any]] = []
    for number, data in enumerate(packed_document(document)):
        metadata = {"name": f"{name}-{number}"} | ({"namespace": namespace} if namespace else {})
        items.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data})
    typer.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    names = ", ".join(item["metadata"]["name"] for item in items)
    typer.echo(f"planFrom:\n  configMaps: [{names}]\n  digest: {document.digest}", err=True)


def _read(file: Path) -> Any:
    from kafka_operator.decide.plans.plan_document import (  # noqa: PLC0415
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
