{{/* Resources whose requests may contain an approval, with the template of their CEL expression. */}}
{{- define "steward.approvals" -}}
clusters: steward.approvesCluster
reassignments: steward.approvesReassignment
{{- end }}

{{/* CEL: whether a request approves the plan of a Reassignment, as kafka_operator.decide.approval: a new one that runs without approval, a
change to that, another approvedDigest. An exact plan without spec.approval is Automatic. */}}
{{- define "steward.approvesReassignment" -}}
(has(object.spec.approval) ? object.spec.approval == 'Automatic' : !has(object.spec.goal))
&& !(oldObject != null && (has(oldObject.spec.approval) ? oldObject.spec.approval == 'Automatic' : !has(oldObject.spec.goal)))
|| has(object.spec.approvedDigest)
&& !(oldObject != null && has(oldObject.spec.approvedDigest) && oldObject.spec.approvedDigest == object.spec.approvedDigest)
{{- end }}

{{/* CEL: whether a request approves all Reassignments that a Cluster will create. */}}
{{- define "steward.approvesCluster" -}}
has(object.spec.autoRebalance) && has(object.spec.autoRebalance.approval) && object.spec.autoRebalance.approval == 'Automatic'
&& !(oldObject != null && has(oldObject.spec.autoRebalance) && has(oldObject.spec.autoRebalance.approval)
&& oldObject.spec.autoRebalance.approval == 'Automatic')
{{- end }}
