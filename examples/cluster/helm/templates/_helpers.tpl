{{- define "gatelet.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gatelet.secret" -}}
{{ .Values.secret.existing | default .Release.Name }}
{{- end }}
