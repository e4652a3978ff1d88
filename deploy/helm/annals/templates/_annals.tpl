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
env:
  # TLS ends at the ingress.
  - { name: ANNALS_BEHIND_TLS, value: 'true' }
  # As long as load balancers that ask /ready take to notice.
  - { name: ANNALS_SHUTDOWN_DELAY_MS, value: '15000' }
  {{- range $name, $value := .Values.env }}
  {{- /* Helm reads numbers of a file as floats, and would write 6.7108864e+07. */}}
  {{- if kindIs "float64" $value }}{{ $value = toJson $value }}{{ end }}
  - { name: {{ $name }}, value: {{ $value | toString | quote }} }
  {{- end }}
{{- end }}
