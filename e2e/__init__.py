"""End-to-end tests: the product in a real cluster, with images, chart, pods and nodes. `make e2e` runs all of them.

Not shipped, and not part of `make test`: they need root on Debian, or a Docker engine with kind, or a cluster in `KUBECONFIG`.
"""
