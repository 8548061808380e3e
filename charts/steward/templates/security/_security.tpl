{{/* Super users of brokers and controllers, as a YAML list. */}}
{{- define "steward.superUsers" -}}
{{- with .Values.security -}}
{{ prepend .authorizer.superUsers (printf "User:%s" .sasl.username) | uniq | toYaml }}
{{- end }}
{{- end }}

{{/* Security protocol of the listeners of the chart's brokers and controllers. */}}
{{- define "steward.protocol" -}}
{{- with .Values.security -}}
{{- .sasl.enabled | ternary "SASL_SSL" (.tls.enabled | ternary "SSL" "PLAINTEXT") -}}
{{- end -}}
{{- end }}

{{/* Whether the chart's ZooKeeper and its clients use TLS: "true", or empty. Nothing is known about the certificates of an existing ensemble. */}}
{{- define "steward.zookeeperTls" -}}
{{- if and .Values.security.tls.enabled .Values.zookeeper.enabled -}}
true
{{- end -}}
{{- end }}

{{/* Port of ZooKeeper for clients in other pods. */}}
{{- define "steward.zookeeperPort" -}}
{{- include "steward.zookeeperTls" . | empty | ternary 2181 2281 -}}
{{- end }}

{{/* Secret with certificate and key of brokers, controllers and ZooKeeper. */}}
{{- define "steward.tlsSecret" -}}
{{- .Values.security.tls.secret | default (printf "%s-tls" (include "steward.fullname" .)) -}}
{{- end }}

{{/* Secret with the certificate authority, for clients. */}}
{{- define "steward.caSecret" -}}
{{- .Values.security.tls.caSecret | default .Values.security.tls.secret | default (printf "%s-ca" (include "steward.fullname" .)) -}}
{{- end }}

{{/* Secret with the password of the release's own user. */}}
{{- define "steward.userSecret" -}}
{{ include "steward.fullname" . }}-user
{{- end }}

{{/* Type of authentication in a Cluster by the name of the SASL mechanism. */}}
{{- define "steward.authenticationType" -}}
{{- get (dict "PLAIN" "Plain" "SCRAM-SHA-256" "ScramSHA256" "SCRAM-SHA-512" "ScramSHA512") .Values.security.sasl.mechanism -}}
{{- end }}

{{/* tls and authentication of the release's Cluster. */}}
{{- define "steward.clusterSecurity" -}}
{{- with .Values.security -}}
{{- if .tls.enabled }}
tls: {caSecretRef: {name: {{ include "steward.caSecret" $ }}}}
{{- end }}
{{- if .sasl.enabled }}
authentication:
  type: {{ include "steward.authenticationType" $ }}
  username: {{ .sasl.username }}
  secretRef: {name: {{ include "steward.userSecret" $ }}}
{{- end }}
{{- end }}
{{- end }}

{{/* Environment of brokers, which the image turns into settings. */}}
{{- define "steward.brokerSecurityEnv" -}}
{{- with .Values.security -}}
{{- if .tls.enabled }}
- {name: SECURITY_PROTOCOL, value: {{ include "steward.protocol" $ }}}
{{- end }}
{{- if include "steward.zookeeperTls" $ }}
- {name: ZOOKEEPER_TLS, value: "true"}
{{- end }}
{{- if .sasl.enabled }}
- {name: SASL_MECHANISM, value: {{ .sasl.mechanism }}}
- {name: SASL_USERNAME, value: {{ .sasl.username }}}
{{- end }}
{{- end }}
{{- end }}

{{/* Settings of brokers that are the same for all, as a YAML map. */}}
{{- define "steward.authorizerSettings" -}}
{{- with .Values.security -}}
{{- if .authorizer.enabled }}
authorizer.class.name: kafka.security.authorizer.AclAuthorizer
super.users: {{ include "steward.superUsers" $ | fromYamlArray | join ";" }}
allow.everyone.if.no.acl.found: {{ .authorizer.allowEveryoneIfNoAcl | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Arguments of the controllers. */}}
{{- define "steward.controllerSecurity" -}}
{{- with .Values.security -}}
{{- if .tls.enabled }}
- --tls-certificate=/etc/kafka/tls/tls.crt
- --tls-key=/etc/kafka/tls/tls.key
- --broker-tls-ca=/etc/kafka/tls/ca.crt
{{- end }}
{{- if include "steward.zookeeperTls" $ }}
- --zookeeper-tls-ca=/etc/kafka/tls/ca.crt
- --zookeeper-tls-certificate=/etc/kafka/tls/tls.crt
- --zookeeper-tls-key=/etc/kafka/tls/tls.key
- --zookeeper-set-acl
{{- end }}
{{- if .sasl.enabled }}
- --sasl-mechanism={{ .sasl.mechanism }}
- --broker-sasl-mechanism={{ .sasl.mechanism }}
- --broker-sasl-username={{ .sasl.username }}
- --broker-sasl-password-file=/etc/kafka/user/password
{{- if eq .sasl.mechanism "PLAIN" }}
- --sasl-users-file=/etc/kafka/user/users
{{- if .sasl.usersSecret }}
- --sasl-users-file=/etc/kafka/users/users
{{- end }}
{{- end }}
- {{ .authorizer.enabled | ternary "--authorizer" "--no-authorizer" }}
{{- if .authorizer.enabled }}
{{- range include "steward.superUsers" $ | fromYamlArray }}
- --super-user={{ . }}
{{- end }}
{{- if .authorizer.allowEveryoneIfNoAcl }}
- --allow-everyone-if-no-acl
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Mounts of brokers and controllers; with `component` zookeeper only the certificate. */}}
{{- define "steward.securityMounts" -}}
{{- $security := .root.Values.security -}}
{{- if $security.tls.enabled }}
- {name: tls, mountPath: /etc/kafka/tls, readOnly: true}
{{- end }}
{{- if and $security.sasl.enabled (ne .component "zookeeper") }}
- {name: user, mountPath: /etc/kafka/user, readOnly: true}
{{- if $security.sasl.usersSecret }}
- {name: users, mountPath: /etc/kafka/users, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{/* The volumes of these mounts. Files with secrets are readable only for the pod's group: Steward rejects others. */}}
{{- define "steward.securityVolumes" -}}
{{- $security := .root.Values.security -}}
{{- if $security.tls.enabled }}
- {name: tls, secret: {secretName: {{ include "steward.tlsSecret" .root }}, defaultMode: 0440}}
{{- end }}
{{- if and $security.sasl.enabled (ne .component "zookeeper") }}
- {name: user, secret: {secretName: {{ include "steward.userSecret" .root }}, defaultMode: 0440}}
{{- if $security.sasl.usersSecret }}
- {name: users, secret: {secretName: {{ $security.sasl.usersSecret }}, defaultMode: 0440}}
{{- end }}
{{- end }}
{{- end }}

{{/* Volume of a client of the release's own cluster: the certificate authority and the password, as ca.crt and password. */}}
{{- define "steward.clientVolume" -}}
{{- $sources := list -}}
{{- if .Values.security.tls.enabled -}}
{{- $sources = append $sources (dict "secret" (dict "name" (include "steward.caSecret" .) "items" (list (dict "key" "ca.crt" "path" "ca.crt")))) -}}
{{- end -}}
{{- if .Values.security.sasl.enabled -}}
{{- $sources = append $sources (dict "secret" (dict "name" (include "steward.userSecret" .) "items" (list (dict "key" "password" "path" "password")))) -}}
{{- end -}}
projected: {{ dict "defaultMode" 288 "sources" $sources | toJson }}
{{- end }}

{{/* /tmp of a container that writes files with secrets: in memory, if there are any. */}}
{{- define "steward.secretTmp" -}}
{{- dict "sizeLimit" .size | merge (.root.Values.security.tls.enabled | ternary (dict "medium" "Memory") dict) | toJson -}}
{{- end }}

{{/* Names that the servers' certificate is valid for. */}}
{{- define "steward.certificateHosts" -}}
{{- $name := include "steward.fullname" . -}}
{{- $hosts := list -}}
{{- range $service := list "brokers" "controllers" "zookeeper" -}}
{{- $hosts = append $hosts (printf "*.%s" (include "steward.domain" (dict "root" $ "service" (printf "%s-%s" $name $service)))) -}}
{{- end -}}
{{- $bootstrap := printf "%s-kafka" $name -}}
{{- $hosts = append $hosts (include "steward.domain" (dict "root" . "service" $bootstrap)) -}}
{{- concat $hosts (list (printf "%s.%s.svc" $bootstrap .Release.Namespace) (printf "%s.%s" $bootstrap .Release.Namespace) $bootstrap) | join "," -}}
{{- end }}

{{/* Whether the chart creates Secrets: "true", or empty. */}}
{{- define "steward.createsSecrets" -}}
{{- with .Values.security -}}
{{- if or .sasl.enabled (and .tls.enabled (not .tls.secret)) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/*
Protocol and mechanism of the installed brokers, as one text, empty without brokers. They are in an annotation of the StatefulSet since both
ends of a connection between brokers have to agree: brokers cannot be replaced one by one when it changes.
*/}}
{{- define "steward.installedSecurity" -}}
{{- $brokers := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-broker" (include "steward.fullname" .)) -}}
{{- if $brokers -}}
{{- dig "metadata" "annotations" "steward.dev/listeners" "PLAINTEXT" $brokers -}}
{{- end -}}
{{- end }}

{{- define "steward.listenerSecurity" -}}
{{- include "steward.protocol" . }}{{ with .Values.security.sasl }}{{ if .enabled }} {{ .mechanism }}{{ end }}{{ end -}}
{{- end }}

{{/* The end of a sentence about clients, for NOTES.txt. */}}
{{- define "steward.accessNote" -}}
{{- with .Values.security -}}
{{- if .sasl.enabled -}}
with TLS and {{ .sasl.mechanism }}{{ .authorizer.enabled | ternary ", and are authorized by ACLs" ", without authorization" }}.
   The certificate authority is in the Secret {{ include "steward.caSecret" $ }}; see docs/security.md for users.
{{- else if .tls.enabled -}}
with TLS, without authentication or authorization.
   The certificate authority is in the Secret {{ include "steward.caSecret" $ }}.
{{- else -}}
without authentication or authorization.
{{- end -}}
{{- end -}}
{{- end }}

{{/* Security values that depend on each other, or that the installed brokers do not have. */}}
{{- define "steward.checkSecurity" -}}
{{- $security := .Values.security -}}
{{- if and $security.sasl.enabled (not $security.tls.enabled) -}}
{{- fail "security.sasl.enabled is true and security.tls.enabled is false: without TLS anyone on the network path could take over connections. Enable both" -}}
{{- end -}}
{{- if and $security.authorizer.enabled (not $security.sasl.enabled) -}}
{{- fail "security.authorizer.enabled is true and security.sasl.enabled is false: every client would be the same anonymous user. Enable both" -}}
{{- end -}}
{{- if and $security.tls.enabled (not .Values.brokers.enabled) -}}
{{- fail "security.tls.enabled is true and brokers.enabled is false: security is that of the chart's brokers. Clusters outside the release have tls and authentication in clusters" -}}
{{- end -}}
{{- if and $security.tls.caSecret (not $security.tls.secret) -}}
{{- fail "security.tls.caSecret is set and security.tls.secret is empty: the chart's own authority is in its own Secret. Set both, or none" -}}
{{- end -}}
{{- $installed := include "steward.installedSecurity" . -}}
{{- $wanted := include "steward.listenerSecurity" . -}}
{{- if and $installed (ne $installed $wanted) -}}
{{- fail (printf "security: the installed brokers have the listeners %s, and the values declare %s. Brokers with different listeners cannot connect to each other, so this needs a new installation" $installed $wanted) -}}
{{- end -}}
{{- $schedule := .Values.analytics.schedule -}}
{{- if and $security.tls.enabled $schedule.enabled (not $schedule.samples) (not .Values.analytics.sampler.bootstrapServers) (not $schedule.kafkaProperties.secret) -}}
{{- fail "security.tls.enabled is true and analytics.schedule.kafkaProperties.secret is empty: the analytics read samples from the secured brokers. Create that Secret in the namespace of jobs (docs/security.md)" -}}
{{- end -}}
{{- end }}
