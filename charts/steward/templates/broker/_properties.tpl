{{/*
The brokers' settings that are the same for all; what differs is written after it in the pod (images/kafka). The cleaner's buffer
is a quarter of Kafka's own, which would be a third of the default heap. A first connection may wait for ZooKeeper's own start.
*/}}
{{- define "steward.serverProperties" -}}
{{- $factor := include "steward.replicationFactor" . -}}
{{- $insync := include "steward.minInsyncReplicas" . -}}
{{- $properties := dict
  "zookeeper.session.timeout.ms" (.Values.brokers.sessionTimeoutMs | int | toString)
  "zookeeper.connection.timeout.ms" "60000"
  "default.replication.factor" $factor
  "min.insync.replicas" $insync
  "offsets.topic.replication.factor" $factor
  "transaction.state.log.replication.factor" $factor
  "transaction.state.log.min.isr" $insync
  "controlled.shutdown.enable" "true"
  "log.cleaner.dedupe.buffer.size" "33554432"
-}}
{{- $_ := merge $properties (include "steward.authorizerSettings" . | fromYaml) }}
{{- range $key, $value := .Values.kafka.config }}
{{- /* Numbers come as floats, which would be written 6.048e+08. */}}
{{- $whole := and (kindIs "float64" $value) (eq (floor $value) $value) }}
{{- $_ := set $properties $key ($whole | ternary (int64 $value) $value | toString) }}
{{- end }}
{{- range $key, $value := $properties }}
{{ $key }}={{ $value }}
{{- end }}
{{- end }}
