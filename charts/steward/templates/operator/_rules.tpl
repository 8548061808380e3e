{{/* Rules of the operator in a served namespace: its own resources, and the brokers' pods. */}}
{{- define "steward.operatorRules" -}}
- {apiGroups: [steward.dev], resources: [clusters, topics, reassignments, elections], verbs: [get, list, watch, patch]}
- {apiGroups: [steward.dev], resources: [clusters/status, topics/status, reassignments/status, elections/status], verbs: [patch]}
- {apiGroups: [steward.dev], resources: [reassignments], verbs: [create]}
- {apiGroups: [""], resources: [events], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, create]}
{{- with .Values.operator.secrets }}
{{- if has "*" . }}
- {apiGroups: [""], resources: [secrets], verbs: [get]}
{{- else }}
- {apiGroups: [""], resources: [secrets], resourceNames: {{ toJson . }}, verbs: [get]}
{{- end }}
{{- end }}
- {apiGroups: [apps], resources: [statefulsets], verbs: [get]}
- {apiGroups: [apps], resources: [statefulsets/scale], verbs: [patch]}
- {apiGroups: [""], resources: [pods], verbs: [list, delete]}
{{- if .Values.analytics.enabled }}
- {apiGroups: [steward.dev], resources: [sparkapplications, scheduledsparkapplications], verbs: [get, list, watch, patch]}
- {apiGroups: [steward.dev], resources: [sparkapplications/status, scheduledsparkapplications/status], verbs: [patch]}
{{- end }}
{{- end }}

{{/* Additional rules in namespaces of SparkApplications: drivers' pods and runs of schedules. */}}
{{- define "steward.sparkRules" -}}
- {apiGroups: [steward.dev], resources: [sparkapplications], verbs: [create, delete]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, create, delete]}
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
{{- if .Values.analytics.sparkOperator }}
- {apiGroups: [sparkoperator.k8s.io], resources: [sparkapplications], verbs: [get, create, patch]}
{{- end }}
{{- end }}

{{/* The namespaces that the operator serves, including those of Spark, as a YAML list; empty for all. */}}
{{- define "steward.namespaces" -}}
{{- if .Values.operator.allNamespaces -}}
[]
{{- else -}}
{{ concat (list .Release.Namespace) .Values.operator.namespaces (include "steward.sparkNamespaces" . | fromYamlArray) | uniq | toYaml }}
{{- end -}}
{{- end }}

{{/* The names of its Leases, one for each shard, as a YAML list (kafka_operator.decide.shards). */}}
{{- define "steward.leases" -}}
{{- $name := printf "%s-operator" .Release.Name -}}
{{- $shards := int .Values.operator.shards -}}
{{- if eq 1 $shards }}
- {{ $name }}
{{- else }}
{{- range $index := until $shards }}
- {{ $name }}-{{ $index }}-of-{{ $shards }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Secret with the webhook's certificate. */}}
{{- define "steward.webhookSecret" -}}
{{- if or .Values.operator.webhook.secret .Values.operator.webhook.certManager.enabled -}}
{{ default (printf "%s-webhook" .Release.Name) .Values.operator.webhook.secret }}
{{- else -}}
{{- fail "operator.webhook needs a certificate: set secret and caBundle, or certManager.enabled" -}}
{{- end -}}
{{- end }}
