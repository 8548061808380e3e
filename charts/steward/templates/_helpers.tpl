{{/* Names and pieces that several templates share. */}}

{{/*
Prefix of all object names: the name of the release. The longest names are those of StatefulSets: with a hash they are the value of a label
(63 characters), which leaves 41. A longer release name is cut to 32 characters and a digest of all of it, so that two releases with the same
beginning do not collide. A dot is allowed in the name of a release, but not in that of a Service.
*/}}
{{- define "steward.fullname" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name | replace "." "-" -}}
{{- if gt (len $name) 41 -}}
{{- $name = printf "%s-%s" ($name | trunc 32 | trimSuffix "-") (.Release.Name | sha256sum | trunc 8) -}}
{{- end -}}
{{ $name }}
{{- end }}

{{- define "steward.selector" -}}
app.kubernetes.io/name: steward
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "steward.labels" -}}
{{ include "steward.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* An image by its digest, if there is one, else by its tag. */}}
{{- define "steward.image" -}}
{{- with .root.Values.global.imageRegistry }}{{ . }}/{{ end -}}
{{ .image.repository }}{{ with .image.digest }}@{{ . }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Name of the ServiceAccount of a component. */}}
{{- define "steward.account" -}}
{{ .values.serviceAccount.name | default (printf "%s-%s" (include "steward.fullname" .root) .component) }}
{{- end }}

{{/* Metadata of a ServiceAccount that the chart creates, from its name on. */}}
{{- define "steward.accountMetadata" -}}
name: {{ include "steward.account" . }}
namespace: {{ .namespace | default .root.Release.Namespace }}
labels: {{- include "steward.labels" . | nindent 2 }}
{{- with .values.serviceAccount.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Metadata of a component's pods; `annotations` are the chart's own. */}}
{{- define "steward.podMetadata" -}}
labels: {{- merge (include "steward.selector" . | fromYaml) .values.podLabels | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The domain in which a headless service's pods have their names. */}}
{{- define "steward.domain" -}}
{{ .service }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end }}

{{- define "steward.bootstrap" -}}
{{ include "steward.domain" (dict "root" . "service" (printf "%s-kafka" (include "steward.fullname" .))) }}:9092
{{- end }}

{{/* zookeeper.connect: that of an existing ensemble, or every server of the chart by its own name, between which clients choose. */}}
{{- define "steward.zookeeperConnect" -}}
{{- if .Values.zookeeper.enabled -}}
{{- $name := printf "%s-zookeeper" (include "steward.fullname" .) -}}
{{- $domain := include "steward.domain" (dict "root" . "service" $name) -}}
{{- range $index := until (int .Values.zookeeper.replicas) -}}
{{- if $index }},{{ end }}{{ $name }}-{{ $index }}.{{ $domain }}:{{ include "steward.zookeeperPort" $ }}
{{- end -}}
{{- else -}}
{{ .Values.zookeeper.connect }}
{{- end -}}
{{- end }}

{{- define "steward.replicationFactor" -}}
{{- if kindIs "invalid" .Values.topics.replicationFactor -}}
{{ min 3 (int .Values.brokers.replicas) }}
{{- else -}}
{{ int .Values.topics.replicationFactor }}
{{- end -}}
{{- end }}

{{- define "steward.minInsyncReplicas" -}}
{{- if kindIs "invalid" .Values.topics.minInsyncReplicas -}}
{{ max 1 (sub (int (include "steward.replicationFactor" .)) 1) }}
{{- else -}}
{{ int .Values.topics.minInsyncReplicas }}
{{- end -}}
{{- end }}

{{/* What the restricted Pod Security standard asks of a container, and a root file system that nothing can be written to. */}}
{{- define "steward.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Placement of the pods of one component. Spread constraints without a labelSelector count the component's own pods. */}}
{{- define "steward.scheduling" -}}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
  - {{- toYaml . | nindent 4 }}
    {{- if not (hasKey . "labelSelector") }}
    labelSelector:
      matchLabels: {{- include "steward.selector" $ | nindent 8 }}
    {{- end }}
{{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
affinity:
{{- if kindIs "invalid" .values.affinity }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      {{- range $weight, $key := dict "100" "kubernetes.io/hostname" "50" "topology.kubernetes.io/zone" }}
      - weight: {{ $weight }}
        podAffinityTerm:
          topologyKey: {{ $key }}
          labelSelector:
            matchLabels: {{- include "steward.selector" $ | nindent 14 }}
      {{- end }}
{{- else }}
  {{- toYaml .values.affinity | nindent 2 }}
{{- end }}
{{- end }}

{{/* The namespace that the chart's own Spark jobs run in, never the release's. */}}
{{- define "steward.jobsNamespace" -}}
{{- .Values.analytics.namespace | default (printf "%s-spark" .Release.Namespace) -}}
{{- end }}

{{/* Whether the operator serves SparkApplications: "true", or empty. */}}
{{- define "steward.servesSpark" -}}
{{- $enabled := .Values.operator.spark.enabled -}}
{{- if kindIs "invalid" $enabled | ternary .Values.analytics.enabled $enabled -}}
true
{{- end -}}
{{- end }}

{{/* All namespaces that SparkApplications run in, as a YAML list. */}}
{{- define "steward.sparkNamespaces" -}}
{{- if not (include "steward.servesSpark" .) -}}
[]
{{- else if .Values.analytics.enabled -}}
{{ prepend .Values.analytics.otherNamespaces (include "steward.jobsNamespace" .) | uniq | toYaml }}
{{- else -}}
{{ .Values.analytics.otherNamespaces | uniq | toYaml }}
{{- end -}}
{{- end }}

{{- define "steward.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Annotations of a hook of helm, which runs before the events `on`; lower weights run first. */}}
{{- define "steward.hook" -}}
helm.sh/hook: {{ .on }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
