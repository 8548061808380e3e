# A node: Debian with systemd and containerd, kind's own files, and kubelet, kubeadm and kubectl.
FROM local/node-base
COPY files/ /
COPY kube /usr/bin/kube
# The three changes of settings are for machines that may not raise limits or protect a process from the end of memory.
RUN set -e; \
    for name in kubelet kubeadm kubectl; do ln -sf kube /usr/bin/$name; done; \
    ln -sf /usr/bin/containerd /usr/bin/ctr /usr/local/bin/; \
    mkdir -p /opt/cni/bin; cp /usr/lib/cni/* /opt/cni/bin/; \
    ctr oci spec \
      | jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
      > /etc/containerd/cri-base.json; \
    sed -i '/OOMScoreAdjust/d' /etc/systemd/system/containerd.service; \
    sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml; \
    systemctl enable containerd kubelet undo-mount-hacks; \
    : > /etc/machine-id
ENV container=docker
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]
