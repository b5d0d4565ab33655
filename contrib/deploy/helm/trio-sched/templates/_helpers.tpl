{{- define "trio-sched.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end }}

{{- define "trio-sched.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "trio-sched.name" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "trio-sched.selector" -}}
app.kubernetes.io/name: trio-sched
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "trio-sched.labels" -}}
{{ include "trio-sched.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The election of a whole configuration decides on the lease; without one of its own it is the one of the values. */}}
{{- define "trio-sched.lease" -}}
{{- $election := .Values.configuration.leaderElection | default dict -}}
{{- $election.resourceName | default (ternary "kube-scheduler" .Values.leaseName (not (empty .Values.configuration))) -}}
{{- end }}

{{- define "trio-sched.leaseNamespace" -}}
{{- $election := .Values.configuration.leaderElection | default dict -}}
{{- $election.resourceNamespace | default (ternary "kube-system" .Release.Namespace (not (empty .Values.configuration))) -}}
{{- end }}

{{- define "trio-sched.configuration" -}}
{{- if .Values.configuration -}}
{{ toYaml .Values.configuration }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: {{ .Values.leaseName }}
  resourceNamespace: {{ .Release.Namespace }}
{{- with .Values.shards }}
sharding:
  shards: {{ . }}
{{- end }}
profiles:
  - schedulerName: {{ .Values.schedulerName }}
{{- if eq .Values.preset "bin-packing" }}
    plugins:
      score:
        enabled:
          - {name: NodeResourcesFit, weight: 10}
        disabled:
          - {name: NodeResourcesFit}
          - {name: NodeResourcesBalancedAllocation}
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources:
              - {name: cpu, weight: 1}
              - {name: memory, weight: 1}
{{- else if eq .Values.preset "spread" }}
    plugins:
      score:
        enabled:
          - {name: PodTopologySpread, weight: 10}
        disabled:
          - {name: PodTopologySpread}
    pluginConfig:
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints:
            - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
            - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
{{- end }}
{{- end }}
{{- end }}
