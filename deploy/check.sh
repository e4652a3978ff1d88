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
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
