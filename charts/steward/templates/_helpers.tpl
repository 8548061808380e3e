{{/* Names and pieces that several templates share. */}}

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

{{- define "steward.image" -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* The domain in which a headless service's pods have their names. */}}
{{- define "steward.domain" -}}
{{ .service }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end }}

{{- define "steward.bootstrap" -}}
{{ include "steward.domain" (dict "root" . "service" (printf "%s-kafka" .Release.Name)) }}:9092
{{- end }}

{{/* zookeeper.connect: every server by its own name, so that clients choose and change by themselves. */}}
{{- define "steward.zookeeperConnect" -}}
{{- $name := printf "%s-zookeeper" .Release.Name -}}
{{- $domain := include "steward.domain" (dict "root" . "service" $name) -}}
{{- range $index := until (int .Values.zookeeper.replicas) -}}
{{- if $index }},{{ end }}{{ $name }}-{{ $index }}.{{ $domain }}:2181
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

{{/* Where pods of one component may run: what values say of it. */}}
{{- define "steward.scheduling" -}}
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

{{/* All namespaces that SparkApplications run in, as a YAML list. */}}
{{- define "steward.sparkNamespaces" -}}
{{- if .Values.analytics.enabled -}}
{{ prepend .Values.analytics.otherNamespaces (include "steward.jobsNamespace" .) | uniq | toYaml }}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "steward.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
