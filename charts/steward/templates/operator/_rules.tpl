{{/*
Whether the operator replaces and scales pods of brokers: "true", or empty. By default it does if a Cluster of the chart declares pods.
*/}}
{{- define "steward.managesPods" -}}
{{- $declared := .Values.brokers.enabled -}}
{{- range .Values.clusters -}}
{{- if or .brokers .controllers -}}{{- $declared = true -}}{{- end -}}
{{- end -}}
{{- if kindIs "invalid" .Values.operator.pods | ternary $declared .Values.operator.pods -}}
true
{{- end -}}
{{- end }}

{{/* Names of all Secrets that the chart's Clusters refer to (caSecretRef, secretRef and others), as a YAML list. */}}
{{- define "steward.clusterSecrets" -}}
{{- $names := include "steward.secretNames" (include "steward.clusterSecurity" . | fromYaml) | fromYamlArray -}}
{{- range .Values.clusters -}}
{{- $names = concat $names (include "steward.secretNames" . | fromYamlArray) -}}
{{- end -}}
{{ $names | uniq | sortAlpha | toYaml }}
{{- end }}

{{- define "steward.secretNames" -}}
{{- $names := list -}}
{{- range $key, $value := . -}}
{{- if and (kindIs "map" $value) (hasSuffix "secretref" (lower $key)) $value.name -}}
{{- $names = append $names $value.name -}}
{{- else if kindIs "map" $value -}}
{{- $names = concat $names (include "steward.secretNames" $value | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{ toYaml $names }}
{{- end }}

{{/* Rules of the operator in a served namespace: its own resources, and the brokers' pods. */}}
{{- define "steward.operatorRules" -}}
- {apiGroups: [steward.dev], resources: [clusters, topics, reassignments, elections], verbs: [get, list, watch, patch]}
- {apiGroups: [steward.dev], resources: [clusters/status, topics/status, reassignments/status, elections/status], verbs: [patch]}
- {apiGroups: [steward.dev], resources: [reassignments], verbs: [create, approve, delete]}
- {apiGroups: [steward.dev], resources: [elections], verbs: [delete]}
- {apiGroups: [""], resources: [events], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, create]}
{{- with .Values.operator.secrets }}
{{- if has "*" . }}
- {apiGroups: [""], resources: [secrets], verbs: [get]}
{{- else }}
- {apiGroups: [""], resources: [secrets], resourceNames: {{ toJson . }}, verbs: [get]}
{{- end }}
{{- end }}
{{- if include "steward.managesPods" . }}
- {apiGroups: [apps], resources: [statefulsets], verbs: [get]}
- {apiGroups: [apps], resources: [statefulsets/scale], verbs: [patch]}
- {apiGroups: [""], resources: [pods], verbs: [list, delete]}
{{- end }}
{{- if include "steward.servesSpark" . }}
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

{{/* The names of its Leases, one for each shard, as a YAML list (reconciler.decide.shards). */}}
{{- define "steward.leases" -}}
{{- $name := printf "%s-operator" (include "steward.fullname" .) -}}
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
{{ default (printf "%s-webhook" (include "steward.fullname" .)) .Values.operator.webhook.secret }}
{{- else -}}
{{- fail "operator.webhook needs a certificate: set secret and caBundle, or certManager.enabled" -}}
{{- end -}}
{{- end }}
