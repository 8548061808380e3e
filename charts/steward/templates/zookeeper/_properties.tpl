{{- define "steward.zookeeperProperties" -}}
{{- $name := printf "%s-zookeeper" (include "steward.fullname" .) -}}
{{- $domain := include "steward.domain" (dict "root" . "service" $name) -}}
tickTime={{ .Values.zookeeper.tickTimeMs }}
initLimit=20
syncLimit=5
maxClientCnxns=0
autopurge.snapRetainCount=3
autopurge.purgeInterval=24
4lw.commands.whitelist=srvr
{{- if gt (int .Values.zookeeper.replicas) 1 }}
quorumListenOnAllIPs=true
{{- range $index := until (int .Values.zookeeper.replicas) }}
server.{{ add1 $index }}={{ $name }}-{{ $index }}.{{ $domain }}:2888:3888
{{- end }}
{{- end }}
{{- end }}
