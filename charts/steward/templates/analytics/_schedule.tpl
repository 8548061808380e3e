{{/*
Rights of Spark's Kubernetes scheduler: pods of executors, and a ConfigMap with their settings. Volume claims are created only if executors
have on-demand claims (claims). A Service exists only in cluster mode, in which Kubeflow's operator submits the driver (cluster).
*/}}
{{- define "steward.driverRules" -}}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch, create, patch, delete, deletecollection]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, deletecollection]}
{{- if .cluster }}
- {apiGroups: [""], resources: [services], verbs: [deletecollection]}
{{- end }}
{{- if .claims }}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, list, create, patch, delete, deletecollection]}
{{- end }}
{{- end }}

{{/* Checks of analytics.schedule; errors name the value. */}}
{{- define "steward.checkSchedule" -}}
{{- $schedule := .Values.analytics.schedule -}}
{{- $sampler := .Values.analytics.sampler -}}
{{- $storage := $schedule.storage -}}
{{- if not .Values.analytics.enabled -}}
{{- fail "analytics.schedule.enabled is true and analytics.enabled is false: the operator would not start any run" -}}
{{- end -}}
{{- if not (include "steward.servesSpark" .) -}}
{{- fail "analytics.schedule.enabled is true and operator.spark.enabled is false: the operator would not start any run" -}}
{{- end -}}
{{- if and (not $schedule.samples) (not $sampler.enabled) -}}
{{- fail "analytics.schedule.enabled is true, analytics.sampler.enabled is false and analytics.schedule.samples is empty: there are no samples" -}}
{{- end -}}
{{- if and (or $schedule.samples $sampler.bootstrapServers) (not $schedule.cluster) -}}
{{- fail "analytics.schedule.cluster is empty, and the samples are not of the release's cluster: set the Cluster resource of the sampled cluster" -}}
{{- end -}}
{{- $places := compact (list (empty $storage.size | ternary "" "size") (empty $storage.existingClaim | ternary "" "existingClaim") (empty $storage.url | ternary "" "url")) -}}
{{- if not $places -}}
{{- fail "analytics.schedule.storage is empty: set size, existingClaim or url" -}}
{{- end -}}
{{- if gt (len $places) 1 -}}
{{- fail (printf "analytics.schedule.storage has %s: set one of them" (join " and " $places)) -}}
{{- end -}}
{{- if and $storage.secret (not $storage.url) -}}
{{- fail "analytics.schedule.storage.secret is for object storage: set url as well" -}}
{{- end -}}
{{- $properties := $schedule.kafkaProperties -}}
{{- if ne (empty $properties.secret) (empty $properties.key) -}}
{{- fail "analytics.schedule.kafkaProperties needs both secret and key" -}}
{{- end -}}
{{- if and (not $schedule.samples) (ne $sampler.securityProtocol "PLAINTEXT") (not $properties.secret) -}}
{{- fail (printf "analytics.sampler.securityProtocol is %s: set analytics.schedule.kafkaProperties, which Spark needs to read the samples" $sampler.securityProtocol) -}}
{{- end -}}
{{- if $storage.size -}}
{{- include "steward.checkStorageClass" (dict "component" "analytics.schedule" "class" $storage.class) -}}
{{- end -}}
{{- end }}

{{/* Settings of both driver and executors: volume mounts, security context and scheduling. */}}
{{- define "steward.balancePod" -}}
{{- $schedule := .root.Values.analytics.schedule -}}
labels: {{- include "steward.selector" . | nindent 2 }}
podSecurityContext: {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- if $schedule.storage.secret }}
env:
  {{- range $name, $key := dict "AWS_ACCESS_KEY_ID" "access-key" "AWS_SECRET_ACCESS_KEY" "secret-key" }}
  - name: {{ $name }}
    valueFrom: {secretKeyRef: {name: {{ $schedule.storage.secret }}, key: {{ $key }}}}
  {{- end }}
{{- end }}
{{- if or (not $schedule.storage.url) $schedule.kafkaProperties.secret }}
volumeMounts:
  {{- if not $schedule.storage.url }}
  - {name: balance, mountPath: /var/lib/steward}
  {{- end }}
  {{- if $schedule.kafkaProperties.secret }}
  - {name: kafka, mountPath: /etc/steward/kafka, readOnly: true}
  {{- end }}
{{- end }}
{{- with $schedule.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $schedule.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $schedule.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* The parallel collector for a JVM of several cores, with a thread for each: it sees all cores of its node. sparkConf overrides it. */}}
{{- define "steward.collector" -}}
{{- if gt (int .) 1 -}}
javaOptions: -XX:+UseParallelGC -XX:ParallelGCThreads={{ int . }}
{{- end -}}
{{- end }}

{{/*
Memory of a run in MiB, by the partitions of the cluster (analytics.schedule.partitions); values that are set take precedence.

Heap of the driver: 768 MiB are enough for every stage of a small cluster in one JVM; the loads of a million partitions need 512 MiB, of
which 250 MiB per million grow with the partitions. Overhead of the driver: Python needs 160 MiB and 0.43 KiB per partition (the planner),
the JVM 250 to 450 MiB outside of its heap. Executors: a task needs at most the 64 MB of shuffle memory that Spark assigns, so memory is by
cores; 512 MiB per task are enough for 100,000 partitions, and half a KiB per partition is margin.
*/}}
{{- define "steward.driverMemory" -}}
{{- $partitions := int64 .partitions -}}
memory: {{ .driver.memory | default (printf "%dm" (add 768 (div $partitions 4000))) }}
{{- $factors := or (hasKey .sparkConf "spark.kubernetes.memoryOverheadFactor") (hasKey .sparkConf "spark.driver.memoryOverheadFactor") }}
{{- if .driver.memoryOverhead }}
memoryOverhead: {{ .driver.memoryOverhead }}
{{- else if not (or .driver.memory $factors) }}
memoryOverhead: {{ printf "%dm" (add 512 (div (mul $partitions 6) 10000)) }}
{{- end }}
{{- end }}

{{- define "steward.executorMemory" -}}
memory: {{ .executor.memory | default (printf "%dm" (add (mul 1024 (int64 .executor.cores)) (div (int64 .partitions) 2000))) }}
{{- end }}
