{{/* Rejects contradicting values; values.schema.json rejects single invalid values. */}}
{{- define "steward.checks" -}}
{{- $factor := int (include "steward.replicationFactor" .) -}}
{{- $insync := int (include "steward.minInsyncReplicas" .) -}}
{{- $brokers := int .Values.brokers.replicas -}}
{{- if gt $factor $brokers -}}
{{- fail (printf "topics.replicationFactor is %d and brokers.replicas is %d: a topic cannot have more replicas than there are brokers" $factor $brokers) -}}
{{- end -}}
{{- if gt $insync $factor -}}
{{- fail (printf "topics.minInsyncReplicas is %d and topics.replicationFactor is %d: no write with acks=all could succeed" $insync $factor) -}}
{{- end -}}
{{- if and .Values.operator.allNamespaces .Values.operator.namespaces -}}
{{- fail (printf "operator.allNamespaces is true and operator.namespaces contains %s: set only one of them" (join ", " .Values.operator.namespaces)) -}}
{{- end -}}
{{- if lt (int .Values.operator.replicas) (int .Values.operator.shards) -}}
{{- fail (printf "operator.replicas is %d and operator.shards is %d: each shard needs at least one replica" (int .Values.operator.replicas) (int .Values.operator.shards)) -}}
{{- end -}}
{{- range $key, $_ := .Values.kafka.config -}}
{{- if has $key (include "steward.ownSettings" $ | fromYamlArray) -}}
{{- fail (printf "kafka.config.%s is set by the chart: use the values brokers and topics" $key) -}}
{{- end -}}
{{- end -}}
{{- $ensemble := int (dig "spec" "replicas" 0 (lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-zookeeper" .Release.Name))) -}}
{{- $servers := int .Values.zookeeper.replicas -}}
{{- if and $ensemble (ne $ensemble $servers) -}}
{{- fail (printf "zookeeper.replicas is %d, and the ensemble has %d servers: the number of servers cannot be changed after the installation" $servers $ensemble) -}}
{{- end -}}
{{- range $component := list "brokers" "zookeeper" -}}
{{- $values := index $.Values $component -}}
{{- include "steward.checkHeap" (dict "component" $component "values" $values) -}}
{{- include "steward.checkStorageClass" (dict "component" $component "class" $values.storage.class) -}}
{{- end -}}
{{- if has .Release.Namespace (include "steward.sparkNamespaces" . | fromYamlArray) -}}
{{- fail (printf "analytics.namespace and analytics.otherNamespaces cannot name %s, the release's namespace: a Spark driver may delete any pod in its namespace" .Release.Namespace) -}}
{{- end -}}
{{- if .Values.analytics.schedule.enabled -}}
{{- include "steward.checkSchedule" . -}}
{{- end -}}
{{- end }}

{{/* A JVM needs about 128 MiB in addition to its heap; with less it is killed later, not at its start. */}}
{{- define "steward.checkHeap" -}}
{{- $heap := mul (regexFind "^[0-9]+" .values.heap | int) (hasSuffix "g" .values.heap | ternary 1024 1) -}}
{{- $limit := dig "limits" "memory" "" .values.resources | toString -}}
{{- $number := regexFind "^[0-9]+(Mi|Gi)$" $limit -}}
{{- if $number -}}
{{- $mebibytes := mul (regexFind "^[0-9]+" $limit | int) (hasSuffix "Gi" $limit | ternary 1024 1) -}}
{{- if lt $mebibytes (add $heap 128) -}}
{{- fail (printf "%s.resources.limits.memory is %s and %s.heap is %s: a JVM needs 128Mi in addition to its heap" .component $limit .component .values.heap) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Volumes that cannot be provisioned would leave pods pending. Without a cluster (helm template) nothing is checked. */}}
{{- define "steward.checkStorageClass" -}}
{{- if lookup "v1" "Namespace" "" "default" -}}
{{- if .class -}}
{{- if not (lookup "storage.k8s.io/v1" "StorageClass" "" .class) -}}
{{- fail (printf "%s.storage.class is %s, which is not a StorageClass of the cluster" .component .class) -}}
{{- end -}}
{{- else -}}
{{- $default := false -}}
{{- range (lookup "storage.k8s.io/v1" "StorageClass" "" "").items -}}
{{- if eq "true" (dig "metadata" "annotations" "storageclass.kubernetes.io/is-default-class" "" .) -}}
{{- $default = true -}}
{{- end -}}
{{- end -}}
{{- if not $default -}}
{{- fail (printf "%s.storage.class is empty, but the cluster has no default StorageClass: set one" .component) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Broker settings that the chart or the image sets, as a YAML list. */}}
{{- define "steward.ownSettings" -}}
- advertised.listeners
- broker.id
- broker.rack
- control.plane.listener.name
- default.replication.factor
- inter.broker.listener.name
- listener.security.protocol.map
- listeners
- log.dir
- log.dirs
- min.insync.replicas
- node.id
- offsets.topic.replication.factor
- process.roles
- reserved.broker.max.id
- security.inter.broker.protocol
- transaction.state.log.min.isr
- transaction.state.log.replication.factor
- zookeeper.connect
- zookeeper.session.timeout.ms
{{- end }}
