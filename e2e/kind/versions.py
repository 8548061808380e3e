"""Versions and images of a cluster without an image registry."""

from lab.downloads.go_build import KUBERNETES_VERSION

KIND_VERSION = "v0.33.0"
"""As in modules/clients/go.mod: its own files go into the node's image."""

PAUSE_VERSION = "3.10"
"""As kind's containerd configuration names it; kubeadm's own list may name another."""

DEBIAN = "bookworm"

DEBIAN_IMAGE = f"local/debian:{DEBIAN}"
"""Debian's smallest system, by debootstrap."""

BASE_IMAGE = f"local/base:{DEBIAN}"
"""The base of the product's images where none can be pulled."""

NODE_IMAGE = f"local/node:{KUBERNETES_VERSION}"
