{{/* Rejects contradicting values; values.schema.json rejects single invalid values. */}}
{{- define "steward.checks" -}}
{{- include "steward.checkNames" . -}}
{{- include "steward.checkComponents" . -}}
{{- include "steward.checkClusters" . -}}
{{- include "steward.checkSecurity" . -}}
{{- if .Values.brokers.enabled -}}
{{- include "steward.checkTopics" . -}}
{{- end -}}
{{- if and .Values.operator.allNamespaces .Values.operator.namespaces -}}
{{- fail (printf "operator.allNamespaces is true and operator.namespaces contains %s: set only one of them" (join ", " .Values.operator.namespaces)) -}}
{{- end -}}
{{- if and (eq .Values.admission.approveRight "Webhook") (not .Values.operator.webhook.enabled) -}}
{{- fail "admission.approveRight is Webhook and operator.webhook.enabled is false: enable the webhook, or set Policy or Disabled" -}}
{{- end -}}
{{- if lt (int .Values.operator.replicas) (int .Values.operator.shards) -}}
{{- fail (printf "operator.replicas is %d and operator.shards is %d: each shard needs at least one replica" (int .Values.operator.replicas) (int .Values.operator.shards)) -}}
{{- end -}}
{{- $ensemble := int (dig "spec" "replicas" 0 (lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-zookeeper" (include "steward.fullname" .)))) -}}
{{- $servers := int .Values.zookeeper.replicas -}}
{{- if and .Values.zookeeper.enabled $ensemble (ne $ensemble $servers) -}}
{{- fail (printf "zookeeper.replicas is %d, and the ensemble has %d servers: the number of servers cannot be changed after the installation" $servers $ensemble) -}}
{{- end -}}
{{- range $component := list "brokers" "zookeeper" -}}
{{- $values := index $.Values $component -}}
{{- if $values.enabled -}}
{{- include "steward.checkHeap" (dict "component" $component "values" $values) -}}
{{- include "steward.checkStorageClass" (dict "component" $component "class" $values.storage.class) -}}
{{- end -}}
{{- end -}}
{{- if and (include "steward.servesSpark" .) (not (include "steward.sparkNamespaces" . | fromYamlArray)) -}}
{{- fail "operator.spark.enabled is true, and SparkApplications have no namespace: set analytics.otherNamespaces, or analytics.enabled to true" -}}
{{- end -}}
{{- if has .Release.Namespace (include "steward.sparkNamespaces" . | fromYamlArray) -}}
{{- fail (printf "analytics.namespace and analytics.otherNamespaces cannot name %s, the release's namespace: a Spark driver may delete any pod in its namespace" .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.analytics.sampler.enabled (not .Values.analytics.sampler.bootstrapServers) (not .Values.brokers.enabled) -}}
{{- fail "analytics.sampler.bootstrapServers is empty and brokers.enabled is false: set the bootstrap brokers of the cluster to sample" -}}
{{- end -}}
{{- if .Values.analytics.schedule.enabled -}}
{{- include "steward.checkSchedule" . -}}
{{- end -}}
{{- end }}

{{/* Names that Kubernetes does not accept, and that cannot be cut. */}}
{{- define "steward.checkNames" -}}
{{- $name := include "steward.fullname" . -}}
{{- range $account, $values := dict "operator" .Values.operator "brokers" .Values.brokers "analytics.sampler" .Values.analytics.sampler "analytics.schedule" .Values.analytics.schedule -}}
{{- if and (not $values.serviceAccount.create) (not $values.serviceAccount.name) -}}
{{- fail (printf "%s.serviceAccount.create is false and %s.serviceAccount.name is empty: set the name of the existing ServiceAccount" $account $account) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- fail (printf "the release is named %s, and a Service cannot have a name that begins with a digit: set fullnameOverride" .Release.Name) -}}
{{- end -}}
{{- if and .Values.analytics.enabled (gt (len (include "steward.jobsNamespace" .)) 63) -}}
{{- fail (printf "the namespace of jobs would be %s, and a name of a namespace has at most 63 characters: set analytics.namespace" (include "steward.jobsNamespace" .)) -}}
{{- end -}}
{{- end }}

{{/* Brokers, controllers and ZooKeeper depend on each other. */}}
{{- define "steward.checkComponents" -}}
{{- $zookeeper := .Values.zookeeper -}}
{{- $brokers := .Values.brokers.enabled -}}
{{- $controllers := .Values.controllers -}}
{{- if and $zookeeper.enabled $zookeeper.connect -}}
{{- fail "zookeeper.connect is the address of an existing ensemble: set zookeeper.enabled to false with it" -}}
{{- end -}}
{{- range $name, $enabled := dict "brokers" $brokers "controllers" $controllers.enabled -}}
{{- if and $enabled (not $zookeeper.enabled) (not $zookeeper.connect) -}}
{{- fail (printf "%s.enabled is true and zookeeper.enabled is false: %s need ZooKeeper. Set zookeeper.connect to the address of an existing ensemble, or %s.enabled to false" $name $name $name) -}}
{{- end -}}
{{- end -}}
{{- if and $zookeeper.enabled (not $brokers) (not $controllers.enabled) -}}
{{- fail "zookeeper.enabled is true, and neither brokers nor controllers are enabled: nothing would use ZooKeeper. Set zookeeper.enabled to false" -}}
{{- end -}}
{{- if and $controllers.enabled (not $brokers) (not $controllers.listeners) -}}
{{- fail "controllers.enabled is true and brokers.enabled is false: set controllers.listeners to the listeners of the brokers, which the controllers need too, or controllers.enabled to false" -}}
{{- end -}}
{{- if and $brokers (kindIs "bool" .Values.operator.pods) (not .Values.operator.pods) -}}
{{- fail "operator.pods is false and brokers.enabled is true: only the operator replaces the chart's brokers, for example in an upgrade" -}}
{{- end -}}
{{- if and $brokers $controllers.listeners -}}
{{- fail "controllers.listeners is for brokers outside the release: the chart's brokers have the listeners INTERNAL and CLIENT" -}}
{{- end -}}
{{- end }}

{{/* Names and addresses of the Clusters. */}}
{{- define "steward.checkClusters" -}}
{{- $taken := dict -}}
{{- if .Values.brokers.enabled -}}
{{- $_ := set $taken (include "steward.fullname" .) "the chart's own brokers" -}}
{{- end -}}
{{- range $index, $cluster := .Values.clusters -}}
{{- $name := $cluster.name | default (include "steward.fullname" $) -}}
{{- $place := printf "clusters[%d]" $index -}}
{{- if hasKey $taken $name -}}
{{- fail (printf "%s is the Cluster %s, which is that of %s: set %s.name to another name" $place $name (get $taken $name) $place) -}}
{{- end -}}
{{- $_ := set $taken $name $place -}}
{{- end -}}
{{- end }}

{{/* Replication and settings of the chart's brokers. */}}
{{- define "steward.checkTopics" -}}
{{- $factor := int (include "steward.replicationFactor" .) -}}
{{- $insync := int (include "steward.minInsyncReplicas" .) -}}
{{- $brokers := int .Values.brokers.replicas -}}
{{- if gt $factor $brokers -}}
{{- fail (printf "topics.replicationFactor is %d and brokers.replicas is %d: a topic cannot have more replicas than there are brokers" $factor $brokers) -}}
{{- end -}}
{{- if gt $insync $factor -}}
{{- fail (printf "topics.minInsyncReplicas is %d and topics.replicationFactor is %d: no write with acks=all could succeed" $insync $factor) -}}
{{- end -}}
{{- range $key, $_ := .Values.kafka.config -}}
{{- if has $key (include "steward.ownSettings" $ | fromYamlArray) -}}
{{- fail (printf "kafka.config.%s is set by the chart: use the values brokers and topics" $key) -}}
{{- end -}}
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
- allow.everyone.if.no.acl.found
- authorizer.class.name
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
- sasl.enabled.mechanisms
- sasl.mechanism.inter.broker.protocol
- security.inter.broker.protocol
- ssl.keystore.location
- ssl.keystore.type
- ssl.truststore.location
- ssl.truststore.type
- super.users
- transaction.state.log.min.isr
- transaction.state.log.replication.factor
- zookeeper.connect
- zookeeper.session.timeout.ms
- zookeeper.set.acl
{{- end }}
