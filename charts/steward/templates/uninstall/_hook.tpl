{{- define "steward.uninstallRules" -}}
- {apiGroups: [steward.dev], resources: [clusters, topics, reassignments], verbs: [get, list, patch]}
{{- end }}
