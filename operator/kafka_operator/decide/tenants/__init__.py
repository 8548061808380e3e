"""Rights of namespaces: permissions, quotas, approvals, ownership of topics, and admission of requests."""
