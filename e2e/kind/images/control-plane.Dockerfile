# One image for all that kubeadm starts as a pod: it is tagged with each name that kubeadm asks for.
FROM local/control-plane-base
COPY kube etcd /usr/local/bin/
COPY coredns /coredns
RUN for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do ln -s kube /usr/local/bin/$name; done
