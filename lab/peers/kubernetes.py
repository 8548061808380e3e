"""A real Kubernetes API: etcd and kube-apiserver on free ports of 127.0.0.1.

Everything that a controller uses is real: TLS, RBAC, custom resources with their validation, watches, conflicts. There are no
controllers and nodes: nothing runs pods, a deleted namespace is never emptied and nothing collects orphans.
"""

from __future__ import annotations

import contextlib
import functools
import http
import http.client
import json
import os
import secrets
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab.downloads.kube_binaries import kube_binaries
from lab.errors import LabError
from lab.processes.folder import lab_folder
from lab.processes.http_get import TIMEOUT_S, Answer
from lab.processes.ports import free_port, release_port
from lab.processes.process import Process
from lab.processes.waiting import wait_until

ADMIN = "admin"
OPERATOR = "operator"

USERS: Mapping[str, Sequence[str]] = {ADMIN: ("system:masters",), OPERATOR: ()}
"""User -> groups: one user with all rights, and one without any until a role is bound to it."""

KUBECTL_TIMEOUT_S = 120.0

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVED_TIMEOUT_S = 60.0
"""Some thirty times what new definitions need on a machine that is not busy."""

SHORT_LIVED = {"GOGC": "off"}
"""In the environment of a Go program that ends within a second: what it collects as garbage costs a fifth of its processor time."""

COLLECTS_SELDOM = {"GOGC": "800"}
"""In the environment of the servers, which then use some more memory and less of the processors."""


class KubernetesApi:
    """One API server: `url`, `kubeconfig` (of the admin), `kubeconfig_for(user)`, `kubectl(...)`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._binaries = kube_binaries()
        self._ports = [free_port() for _ in range(3)]
        self.url = f"https://127.0.0.1:{self._ports[2]}"
        self._certificates = folder / "certificates"
        self.certificate_authority = self._certificates / "apiserver.crt"
        self._kubectl_cache = folder / "kubectl-cache"
        self._tokens = {user: secrets.token_urlsafe(24) for user in USERS}
        self._connections = threading.local()
        folder.mkdir(parents=True, exist_ok=True)
        self.etcd = Process("etcd", self._etcd_command(), folder, environment=COLLECTS_SELDOM)
        self.server = Process("kube-apiserver", self._server_command(), folder, environment=COLLECTS_SELDOM)

    @property
    def kubeconfig(self) -> Path:
        """Return the admin's kubeconfig."""
        return self.kubeconfig_for(ADMIN)

    def kubeconfig_for(self, user: str) -> Path:
        """Return the kubeconfig of a user of `USERS`; it is JSON, which is YAML too."""
        path = self.folder / f"kubeconfig-{user}"
        if not path.is_file():
            cluster = {"server": self.url, "certificate-authority": str(self.certificate_authority)}
            content = {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "lab", "cluster": cluster}],
                "users": [{"name": user, "user": {"token": self._tokens[user]}}],
                "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user, "namespace": "default"}}],
                "current-context": "lab",
            }
            path.touch(mode=0o600)
            path.write_text(json.dumps(content, indent=2), encoding="utf-8")
        return path

    def start(self) -> float:
        """Start those of the two that do not run, and return the seconds until the API was ready and had its namespace `default`."""
        if not self.etcd.running:
            self.etcd.launch()
        self.server.launch()
        return self.server.wait_until_ready(self._serves)

    def stop(self) -> None:
        """SIGTERM to the API server; etcd and the data stay."""
        self.server.terminate()

    def kill(self) -> None:
        """Kill -9 the API server; etcd and the data stay."""
        self.server.kill()

    def pause(self) -> None:
        """Freeze the API server."""
        self.server.pause()

    def resume(self) -> None:
        """Continue the API server."""
        self.server.resume()

    def kubectl(
        self, *arguments: str, stdin: str | None = None, user: str = ADMIN, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as a user; a failure is a returncode, or with `check` a `LabError` with its output."""
        command = [
            self._binaries.kubectl,
            f"--kubeconfig={self.kubeconfig_for(user)}",
            f"--cache-dir={self._kubectl_cache}",
            *arguments,
        ]
        done = subprocess.run(
            command,
            check=False,
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=KUBECTL_TIMEOUT_S,
            env={**os.environ, **SHORT_LIVED},
        )
        if check and done.returncode:
            raise LabError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done

    def install_definitions(self, folder: Path) -> None:
        """Apply the custom resource definitions of a folder, and wait until the API serves all resources that are defined.

        `kubectl wait --for=condition=Established` fails where the server has not written the first condition yet.
        """
        self.kubectl("apply", "--server-side", f"--filename={folder}", check=True)
        wait_until(self._serves_defined, timeout_s=SERVED_TIMEOUT_S, what="all custom resources are served")
        # kubectl would find no category of the new resources until its cache, written for the command above, is refreshed.
        shutil.rmtree(self._kubectl_cache, ignore_errors=True)

    def _serves_defined(self) -> bool:
        found = self.get(DEFINITIONS)
        if found is None:
            return False
        items = json.loads(found)["items"]
        conditions = [item.get("status", {}).get("conditions") or () for item in items]
        paths = [
            f"/apis/{item['spec']['group']}/{version['name']}/{item['spec']['names']['plural']}"
            for item in items
            for version in item["spec"]["versions"]
            if version["served"]
        ]
        return all(map(_is_established, conditions)) and all(self.get(path) is not None for path in paths)

    def send(self, method: str, path: str, document: object = None) -> Answer:
        """Send a request as the admin, with a JSON document if one is given; a process of kubectl takes a hundred times as long."""
        return self._request(method, path, document, timeout_s=KUBECTL_TIMEOUT_S)

    def apply(self, path: str, document: object) -> Answer:
        """Apply a resource as `kubectl apply --server-side --force-conflicts` does, without a process."""
        fields = "fieldManager=kubectl&force=true&fieldValidation=Strict"
        return self._request("PATCH", f"{path}?{fields}", document, timeout_s=KUBECTL_TIMEOUT_S)

    def _request(self, method: str, path: str, document: object = None, *, timeout_s: float) -> Answer:
        """Send a request over this thread's connection, which is kept: to open one takes several times as long as a request."""
        kept: http.client.HTTPSConnection | None = getattr(self._connections, "kept", None)
        if kept is not None:
            try:
                return self._ask(kept, method, path, document, timeout_s)
            except (ConnectionError, ssl.SSLError):  # the server ended it while it was idle
                kept.close()
        opened = http.client.HTTPSConnection("127.0.0.1", self._ports[2], timeout=timeout_s, context=self._context)
        self._connections.kept = opened
        return self._ask(opened, method, path, document, timeout_s)

    def _ask(
        self, connection: http.client.HTTPSConnection, method: str, path: str, document: object, timeout_s: float
    ) -> Answer:
        content_type = "application/apply-patch+yaml" if method == "PATCH" else "application/json"  # JSON is YAML too
        headers = {"Authorization": f"Bearer {self._tokens[ADMIN]}", "Content-Type": content_type}
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        try:
            connection.request(method, path, None if document is None else json.dumps(document), headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        except BaseException:
            connection.close()  # the rest of an answer must not be taken for the next one
            raise

    @functools.cached_property
    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate_authority))

    def close(self) -> None:
        """Kill both and release the ports."""
        if (kept := getattr(self._connections, "kept", None)) is not None:
            kept.close()
        self.server.kill()
        self.etcd.kill()
        for port in self._ports:
            release_port(port)

    def _serves(self) -> bool:
        return self.get("/readyz") == b"ok" and self.get("/api/v1/namespaces/default") is not None

    def get(self, path: str) -> bytes | None:
        """Return the body of a GET as the admin, None without a successful response."""
        if not self.certificate_authority.is_file():  # the server writes it when it starts first
            return None
        try:
            answer = self._request("GET", path, timeout_s=TIMEOUT_S)
        except (OSError, http.client.HTTPException):
            return None
        return answer.body if answer.status == http.HTTPStatus.OK else None

    def _etcd_command(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{port}" for port in self._ports[:2])
        return [
            self._binaries.etcd,
            f"--data-dir={self.folder / 'etcd-data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # the data need not outlive the machine
            "--log-level=warn",
        ]

    def _server_command(self) -> list[str]:
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        lines = [f'{token},{user},{user},"{",".join(USERS[user])}"\n' for user, token in self._tokens.items()]
        tokens.write_text("".join(lines), encoding="utf-8")
        # The key that the server makes for its own TLS signs the tokens of service accounts too: a lab needs no second one.
        key = self._certificates / "apiserver.key"
        return [
            self._binaries.kube_apiserver,
            f"--etcd-servers=http://127.0.0.1:{self._ports[0]}",
            f"--cert-dir={self._certificates}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports[2]}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount",  # it waits for accounts that a controller manager would make
            "--endpoint-reconciler-type=none",
        ]


def _is_established(conditions: Sequence[Mapping[str, str]]) -> bool:
    return any((condition["type"], condition["status"]) == ("Established", "True") for condition in conditions)


@contextlib.contextmanager
def kubernetes_api(folder: Path | None = None) -> Iterator[KubernetesApi]:
    """Yield a running API; at the end of the block it is stopped, and its folder is deleted unless it was given."""
    with lab_folder(folder) as place:
        api = KubernetesApi(place)
        try:
            api.start()
            yield api
        finally:
            api.close()
