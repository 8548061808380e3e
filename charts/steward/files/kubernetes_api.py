"""The Kubernetes API for programs in pods of the chart, with only the standard library."""

import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_S = 10.0
NOT_FOUND, CONFLICT = 404, 409


class Api:
    """The Kubernetes API as the pod's own account."""

    def __init__(self, url: str, token: str, trust: ssl.SSLContext) -> None:
        self._url = url
        self._token = token
        self._trust = trust

    def get(self, path: str) -> dict[str, Any]:
        """Return an object or a list."""
        return self._call("GET", path, None)

    def patch(self, path: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Merge a patch."""
        return self._call("PATCH", path, patch)

    def create(self, path: str, resource: dict[str, Any]) -> dict[str, Any]:
        """Create an object in a collection."""
        return self._call("POST", path, resource)

    def delete(self, path: str) -> None:
        """Delete an object, if it is there."""
        try:
            self._call("DELETE", path, None)
        except urllib.error.HTTPError as error:
            if error.code != NOT_FOUND:
                raise

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - an https address, of the cluster itself
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._trust) as answer:  # noqa: S310 - as above
            found: dict[str, Any] = json.load(answer)
        return found


def own_api() -> Api:
    """Return the API with the address and the account of this pod."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    url = f"https://{f'[{host}]' if ':' in host else host}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    return Api(url, (ACCOUNT / "token").read_text("utf-8").strip(), trust)
