{{/* Values that cannot work together, refused by name; values.schema.json refuses what is wrong by itself. */}}
{{- define "steward.checks" -}}
{{- $factor := int (include "steward.replicationFactor" .) -}}
{{- $insync := int (include "steward.minInsyncReplicas" .) -}}
{{- $brokers := int .Values.brokers.replicas -}}
{{- if gt $factor $brokers -}}
{{- fail (printf "topics.replicationFactor is %d and brokers.replicas is %d: a topic cannot have more replicas than there are brokers" $factor $brokers) -}}
{{- end -}}
{{- if gt $insync $factor -}}
{{- fail (printf "topics.minInsyncReplicas is %d and topics.replicationFactor is %d: nothing could be written with acks=all" $insync $factor) -}}
{{- end -}}
{{- end }}
