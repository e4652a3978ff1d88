#!/usr/bin/env bash
# Checks the files of this folder with their own validators: promtool for the alerts and for every expression of the
# dashboard, the Compose specification's schema, and the schemas of Kubernetes. The last line is `N passed, N failed`.
# It needs promtool (Debian: prometheus) and python3 with venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/annals-deploy.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
passed=0
failed=0

check() {
  printf -- '-- %s\n' "$*"
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# Grafana's variables are none of PromQL, so they are given values.
expressions_as_rules() {
  node -e '
    const { panels } = JSON.parse(require("node:fs").readFileSync("grafana.json", "utf8"))
    const rules = panels.flatMap(({ targets = [] }) => targets).map(({ expr }, index) => ({
      record: `dashboard:${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$\w+/g, ".*"),
    }))
    if (rules.length === 0) throw new Error("the dashboard asks for nothing")
    console.log(JSON.stringify({ groups: [{ name: "dashboard", rules }] }))
  ' >"$WORK/dashboard.yml"
}

python3 -m venv "$WORK/venv"
"$WORK/venv/bin/pip" install -q --disable-pip-version-check check-jsonschema==0.39.0 kubernetes-validate==1.37.0
expressions_as_rules
check promtool check rules alerts.yml
check promtool check rules "$WORK/dashboard.yml"
check "$WORK/venv/bin/check-jsonschema" --builtin-schema vendor.compose-spec compose.yaml
check "$WORK/venv/bin/kubernetes-validate" --strict kubernetes.yaml
# Helm is no package of Debian. With Go, which takes minutes once: go install helm.sh/helm/v3/cmd/helm@v3.16.4
if command -v helm >/dev/null; then
  echo 'env: { ANNALS_BODY_BYTES_MAX: 67108864 }' >"$WORK/values.yaml"
  all=(--values "$WORK/values.yaml" --set image.repository=registry.example.com/annals --set image.digest="sha256:$(printf '0%.0s' {1..64})"
    --set backup.enabled=true --set backup.claim=backups --set serviceMonitor.enabled=true --set prometheusRule.enabled=true
    --set env.LOG_LEVEL=warn)
  check helm lint --strict helm/annals "${all[@]}"
  # A helm that Go built believes in the oldest Kubernetes that it knows.
  helm template annals helm/annals --kube-version 1.30.0 "${all[@]}" >"$WORK/chart.yaml"
  # Resources of the Prometheus Operator have no schema in Kubernetes.
  "$WORK/venv/bin/python" - "$WORK" <<'PYTHON'
import sys, yaml
work = sys.argv[1]
documents = [one for one in yaml.safe_load_all(open(f"{work}/chart.yaml")) if one]
kinds = sorted(one["kind"] for one in documents)
expected = ["CronJob", "Deployment", "Job", "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule", "Service", "ServiceMonitor"]
assert kinds == expected, kinds
pods = [one["spec"].get("jobTemplate", one)["spec"]["template"]["spec"] for one in documents if one["kind"] in ("CronJob", "Deployment", "Job")]
for container in (one["containers"][0] for one in pods):
    assert {"name": "ANNALS_BODY_BYTES_MAX", "value": "67108864"} in container["env"], container
rules = next(one["spec"] for one in documents if one["kind"] == "PrometheusRule")
yaml.safe_dump(rules, open(f"{work}/chart_rules.yml", "w"))
own = [one for one in documents if "monitoring.coreos.com" not in one["apiVersion"]]
yaml.safe_dump_all(own, open(f"{work}/chart.yaml", "w"))
PYTHON
  check "$WORK/venv/bin/kubernetes-validate" --strict "$WORK/chart.yaml"
  check promtool check rules "$WORK/chart_rules.yml"
else
  printf -- '-- the Helm chart: skipped, because there is no helm\n'
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
