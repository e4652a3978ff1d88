# shellcheck shell=bash
# Steps of a run that counts what passed and what failed. Source it in the root of the repository; then `finish`.

WORK=$(mktemp -d "${TMPDIR:-/tmp}/annals-ci.XXXXXX")
TIMINGS=()
FAILURES=()
LANES=()
OUTPUT=$WORK/main.output
passed=0
failed=0

clean_up() {
  for lane in ${LANES[@]+"${LANES[@]}"}; do kill "${lane%%:*}" 2>/dev/null || true; done
  if [ -f "$WORK/cluster/postmaster.pid" ]; then
    as_postgres "$POSTGRES_BIN/pg_ctl" stop --mode=immediate --silent --pgdata="$WORK/cluster" || true
  fi
  rm -rf "$WORK"
}
trap clean_up EXIT

# step NAME COMMAND…: runs the command, keeps its time, the processor's, and its output; its exit code is the step's.
step() {
  local name=$1 started=$SECONDS code=0 TIMEFORMAT='%U %S' processor
  shift
  printf '\n== %s\n' "$name"
  # In a shell of its own, which does not count what lanes used that end meanwhile.
  (time { "$@" 2>&1 | tee "$OUTPUT"; }) 2>"$OUTPUT.time" || code=$?
  processor=$(awk '{ print int($1 + $2) }' "$OUTPUT.time")
  TIMINGS+=("$(printf '%5d s  %5s s CPU  %-9s %s' $((SECONDS - started)) "$processor" "$([ $code = 0 ] && echo ok || echo "FAILED $code")" "$name")")
  return $code
}

# lane NAME COMMAND…: runs a function with steps in the background, until `join`. Steps of lanes run beside each other.
lane() {
  local name=$1
  shift
  (
    # What is counted so far is the caller's.
    passed=0 failed=0 TIMINGS=() FAILURES=() LANES=() OUTPUT=$WORK/$name.output
    "$@"
    declare -p passed failed TIMINGS FAILURES >"$WORK/$name.result"
  ) >"$WORK/$name.log" 2>&1 &
  LANES+=("$!:$name")
}

# join: waits for all lanes, prints what each printed, and counts what it counted.
join() {
  local lane name lane_passed lane_failed
  for lane in ${LANES[@]+"${LANES[@]}"}; do
    name=${lane#*:}
    wait "${lane%%:*}" || true
    cat "$WORK/$name.log"
    if [ ! -f "$WORK/$name.result" ]; then
      failed=$((failed + 1))
      FAILURES+=("$name:" "  it ended before its steps did" "$(tail -n 15 "$WORK/$name.log" | cut -c 1-300)")
      continue
    fi
    # shellcheck disable=SC2034
    read -r lane_passed lane_failed <<<"$(source "$WORK/$name.result" && echo "$passed $failed")"
    passed=$((passed + lane_passed))
    failed=$((failed + lane_failed))
    mapfile -t -d '' -O ${#TIMINGS[@]} TIMINGS < <(source "$WORK/$name.result" && for line in ${TIMINGS[@]+"${TIMINGS[@]}"}; do printf '%s\0' "$line"; done)
    mapfile -t -d '' -O ${#FAILURES[@]} FAILURES < <(source "$WORK/$name.result" && for line in ${FAILURES[@]+"${FAILURES[@]}"}; do printf '%s\0' "$line"; done)
  done
  LANES=()
}

# check NAME COMMAND…: a step that counts as one test.
check() {
  if step "$@"; then passed=$((passed + 1)); return; fi
  failed=$((failed + 1))
  FAILURES+=("$1:" "$(end_of_output)")
}

# How the output of the last step ended, to be read once more at the end, which may be all that is kept of a run.
end_of_output() {
  tail -n 15 "$OUTPUT" | cut -c 1-300 | sed 's/^/  /'
}

# suite NAME VARIABLE=VALUE… [-- ARGUMENT…]: a step that runs vitest and counts each test. A run that fails though no
# test did (something was left behind, nothing could start) counts as one failure.
suite() {
  local name=$1 report="$WORK/report-$RANDOM.json" ok=0 counts variables=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  if [ $# -gt 0 ]; then shift; fi
  step "$name" env "${variables[@]}" npx vitest run --reporter=default --reporter=json --outputFile.json="$report" "$@" || ok=1
  counts=$(count_tests "$report")
  read -r suite_passed suite_failed <<<"$counts"
  if [ "$ok" = 1 ] || [ "$suite_failed" != 0 ]; then FAILURES+=("$name:" "$(failed_tests "$report")"); fi
  if [ "$ok" = 1 ] && [ "$suite_failed" = 0 ]; then
    suite_failed=1
    FAILURES+=("$(end_of_output)")
  fi
  passed=$((passed + suite_passed))
  failed=$((failed + suite_failed))
}

count_tests() {
  node -e '
    const { existsSync, readFileSync } = require("node:fs")
    const [path] = process.argv.slice(1)
    const report = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {}
    console.log(report.numPassedTests ?? 0, report.numFailedTests ?? 0)
  ' "$1"
}

# What failed and why, to be read at the end, where thousands of lines of other steps do not hide it.
failed_tests() {
  if [ ! -f "$1" ]; then echo '  no report was written'; return; fi
  node -e '
    const { readFileSync } = require("node:fs")
    const { relative } = require("node:path")
    const [path] = process.argv.slice(1)
    for (const file of JSON.parse(readFileSync(path, "utf8")).testResults) {
      const name = relative(process.cwd(), file.name)
      if (file.status === "failed" && file.message) console.log(`  ${name}: ${file.message.slice(0, 1000)}`)
      for (const test of file.assertionResults.filter(({ status }) => status === "failed"))
        console.log(`  ${name}: ${test.fullName}\n    ${test.failureMessages.join("\n").slice(0, 1000).replaceAll("\n", "\n    ")}`)
    }
  ' "$1"
}

# counted NAME COMMAND…: a step that counts what its last line says, `N passed, N failed`. A run that fails though
# nothing in it did counts as one failure.
counted() {
  local name=$1 ok=0 counts
  step "$@" || ok=1
  counts=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$OUTPUT" | tail -n 1)
  read -r counted_passed counted_failed <<<"${counts:-0 0}"
  if [ "$ok" = 1 ] && [ "$counted_failed" = 0 ]; then counted_failed=1; fi
  if [ "$counted_failed" != 0 ]; then FAILURES+=("$name:" "$(end_of_output)"); fi
  passed=$((passed + counted_passed))
  failed=$((failed + counted_failed))
}

# skip NAME WHY
skip() {
  printf '\n== %s: skipped, because %s\n' "$1" "$2"
  TIMINGS+=("    - s      - s CPU  skipped   $1 ($2)")
}

working_tree() {
  git status --porcelain
  git diff HEAD
}

working_tree_is_unchanged() {
  diff "$WORK/tree-before" <(working_tree)
}

finish() {
  printf '\n== what ran, %d s in all\n' "$SECONDS"
  printf '%s\n' "${TIMINGS[@]}"
  if [ ${#FAILURES[@]} != 0 ]; then printf '\n== what failed\n' && printf '%s\n' "${FAILURES[@]}"; fi
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}
