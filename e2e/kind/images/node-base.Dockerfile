# What a node needs of Debian, above what the control plane's pods need of it.
FROM local/control-plane-base
RUN apt-get update --quiet \
 && apt-get install --yes --no-install-recommends \
      ca-certificates containerd containernetworking-plugins dbus ebtables ethtool hostname iproute2 jq mount nftables procps runc \
      socat systemd systemd-sysv util-linux \
 && apt-get clean && rm -rf /var/lib/apt/lists/*
