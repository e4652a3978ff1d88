{{- define "annals.labels" -}}
app.kubernetes.io/name: annals
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "annals.image" -}}
{{ required "Set image.repository to where your image is" .Values.image.repository }}@{{ required "Set image.digest, such as sha256:…" .Values.image.digest }}
{{- end }}

{{/* What every pod of Annals has. */}}
{{- define "annals.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* What every container of Annals has. */}}
{{- define "annals.container" -}}
image: {{ include "annals.image" . }}
envFrom:
  - secretRef: { name: {{ .Values.secret }} }
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
resources: {{- toYaml .Values.resources | nindent 2 }}
{{- end }}
