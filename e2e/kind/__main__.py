"""`python -m e2e.kind up|down`: only the cluster, for manual work. `up` prints the kubeconfig's path."""

from __future__ import annotations

import sys

from e2e.kind.cluster import create, delete, exists, prepare
from e2e.kind.programs import clients
from e2e.kind.versions import BASE_IMAGE
from lab.downloads.cache import cache_folder
from lab.errors import LabError

USAGE = "usage: python -m e2e.kind up|down"


def main(arguments: list[str]) -> int:
    """Create or delete the cluster and return the exit status."""
    kubeconfig = cache_folder() / "e2e-kubeconfig"
    try:
        match arguments:
            case ["up"]:
                base = prepare()
                if not exists(clients()):
                    create(kubeconfig, own_image=base == BASE_IMAGE)
                sys.stdout.write(f"{kubeconfig}\n")
            case ["down"]:
                delete(kubeconfig)
            case _:
                sys.stderr.write(f"{USAGE}\n")
                return 2
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
