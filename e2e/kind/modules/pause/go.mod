module kafka-steward/e2e/kind/pause

go 1.21
