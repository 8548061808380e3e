"""The product in a real cluster, as a platform engineer meets it: images, chart, pods, nodes. `make e2e` runs it all.

Not shipped, and not part of `make test`: it needs root on Debian, or a Docker engine with kind, or a cluster in `KUBECONFIG`.
"""
