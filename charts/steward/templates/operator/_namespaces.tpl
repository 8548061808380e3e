{{/* The namespaces that the operator serves, as a YAML list; an empty one stands for all. */}}
{{- define "steward.namespaces" -}}
{{- if .Values.operator.allNamespaces -}}
[]
{{- else -}}
{{ prepend .Values.operator.namespaces .Release.Namespace | uniq | toYaml }}
{{- end -}}
{{- end }}
