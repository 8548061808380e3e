ARG BASE
FROM $BASE
RUN apt-get update --quiet \
 && apt-get install --yes --no-install-recommends iptables conntrack kmod \
 && apt-get clean && rm -rf /var/lib/apt/lists/*
