{{/* Resources whose requests may contain an approval, with the template of their CEL expression. */}}
{{- define "steward.approvals" -}}
clusters: steward.approvesCluster
reassignments: steward.approvesReassignment
{{- end }}

{{/* CEL: whether a request approves a Reassignment, as kafka_operator.decide.tenants.approval: its plan, or the partitions after its canary. */}}
{{- define "steward.approvesReassignment" -}}
{{ include "steward.approvesPlan" . }}
|| {{ include "steward.approvesCanary" . }}
{{- end }}

{{/* CEL: a new plan that runs without approval, a change to that, another approvedDigest. An exact plan without spec.approval is Automatic. */}}
{{- define "steward.approvesPlan" -}}
(has(object.spec.approval) ? object.spec.approval == 'Automatic' : !has(object.spec.goal))
&& !(oldObject != null && (has(oldObject.spec.approval) ? oldObject.spec.approval == 'Automatic' : !has(oldObject.spec.goal)))
|| has(object.spec.approvedDigest)
&& !(oldObject != null && has(oldObject.spec.approvedDigest) && oldObject.spec.approvedDigest == object.spec.approvedDigest)
{{- end }}

{{/* CEL: another approvedDigest of the canary; or a canary that waits for approval is removed, becomes Automatic, or gets another number of
partitions, each of which ends its wait. */}}
{{- define "steward.approvesCanary" -}}
has(object.spec.canary) && has(object.spec.canary.approvedDigest)
&& !(oldObject != null && has(oldObject.spec.canary) && has(oldObject.spec.canary.approvedDigest)
&& oldObject.spec.canary.approvedDigest == object.spec.canary.approvedDigest)
|| oldObject != null && has(oldObject.spec.canary)
&& !(has(oldObject.spec.canary.approval) && oldObject.spec.canary.approval == 'Automatic')
&& !(has(object.spec.canary) && object.spec.canary.partitions == oldObject.spec.canary.partitions
&& !(has(object.spec.canary.approval) && object.spec.canary.approval == 'Automatic'))
{{- end }}

{{/* CEL: whether a request approves all Reassignments that a Cluster will create. */}}
{{- define "steward.approvesCluster" -}}
has(object.spec.autoRebalance) && has(object.spec.autoRebalance.approval) && object.spec.autoRebalance.approval == 'Automatic'
&& !(oldObject != null && has(oldObject.spec.autoRebalance) && has(oldObject.spec.autoRebalance.approval)
&& oldObject.spec.autoRebalance.approval == 'Automatic')
{{- end }}
