"""Write the value of a label of this pod's node into a file: the rack of the broker that starts next.

    NODE_NAME=worker-1 python3 node_label.py topology.kubernetes.io/zone /rack/name

A node without the label gives an empty file, which stands for no rack. Python's own library is all that is used.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

ATTEMPTS = 10
"""With a second between them: the API server may be just starting, and after that the pod is started anew anyway."""

TIMEOUT_S = 10.0


def node_label(api: str, account: Path, node: str, label: str) -> str:
    """Return a label's value, empty where the node has no such label; OSError when the API cannot be asked."""
    request = urllib.request.Request(  # noqa: S310 - an https address, of the cluster itself
        f"{api}/api/v1/nodes/{quote(node)}",
        headers={"Authorization": f"Bearer {(account / 'token').read_text(encoding='utf-8').strip()}"},
    )
    trust = ssl.create_default_context(cafile=str(account / "ca.crt"))
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=trust) as answer:  # noqa: S310 - as above
        labels: dict[str, str] = json.load(answer)["metadata"].get("labels", {})
    return labels.get(label, "")


def main(label: str, path: str) -> int:
    """Ask until there is an answer, and return the exit code."""
    node = os.environ["NODE_NAME"]
    api = f"https://{_bracketed(os.environ['KUBERNETES_SERVICE_HOST'])}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    trouble = ""
    for _ in range(ATTEMPTS):
        try:
            value = node_label(api, ACCOUNT, node, label)
        except urllib.error.HTTPError as error:
            trouble = f"{error.code} {error.reason}"
        except OSError as error:
            trouble = str(error)
        else:
            Path(path).write_text(value, encoding="utf-8")
            sys.stdout.write(
                f"node {node}: {label}={value}\n" if value else f"node {node} has no label {label}: no rack\n"
            )
            return 0
        time.sleep(1)
    sys.stderr.write(f"node {node} cannot be read, for which verb get on nodes is needed: {trouble}\n")
    return 1


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
