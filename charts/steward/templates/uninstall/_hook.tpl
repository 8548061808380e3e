{{/* A hook that runs before the release is deleted; lower weights run first. */}}
{{- define "steward.uninstallHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "steward.uninstallRules" -}}
- {apiGroups: [steward.dev], resources: [clusters, topics, reassignments], verbs: [get, list, patch]}
{{- end }}
