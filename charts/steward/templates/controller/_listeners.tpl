{{/* Listeners of the controllers, the inter-broker listener first, as a YAML list: those of the chart's brokers, or of brokers outside it. */}}
{{- define "steward.controllerListeners" -}}
{{- .Values.controllers.listeners | default (list (dict "name" "INTERNAL" "port" 9094) (dict "name" "CLIENT" "port" 9092)) | toYaml -}}
{{- end }}

{{/* Name of a listener's port in pods and Services. */}}
{{- define "steward.listenerPort" -}}
{{- .name | lower | replace "_" "-" -}}
{{- end }}
