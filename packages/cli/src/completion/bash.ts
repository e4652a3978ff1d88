import type { TreeCommand } from './command_tree.js'

/**
 * The completion for bash, also after `npx` unless something else completes that. If it has nothing to offer, bash
 * offers files.
 */
export function bashCompletion(tree: TreeCommand[]): string {
  return `# bash completion of annals. In ~/.bashrc: eval "$(annals completion bash)"
_annals() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} at=annals commands='' options='' i
  COMPREPLY=()
  if [[ \${COMP_WORDS[0]##*/} == npx && \${COMP_WORDS[1]} != annals ]]; then
    ((COMP_CWORD > 1)) || COMPREPLY=($(compgen -W annals -- "$cur"))
    return
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
${tree
  .slice(1)
  .map(({ path }) => `      '${path}') at='${path}' ;;\n`)
  .join('')}    esac
  done
  case "$at $prev" in
${tree.flatMap(valueCases).join('')}  esac
  case "$at" in
${tree.map(commandCase).join('')}  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$commands" -- "$cur"))
  fi
}
complete -o default -F _annals annals
complete -p npx >/dev/null 2>&1 || complete -o default -F _annals npx
`
}

/** Possible values of an option: its choices, or any text. */
function valueCases({ path, options }: TreeCommand): string[] {
  return options.flatMap(({ flag, value }) => {
    if (value === 'none') return []
    const words = typeof value === 'object' ? value.choices.join(' ') : ''
    const reply = words === '' ? '' : `COMPREPLY=($(compgen -W '${words}' -- "$cur")); `
    return [`    '${path} ${flag}') ${reply}return ;;\n`]
  })
}

function commandCase({ path, commands, options }: TreeCommand): string {
  const names = commands.map(({ name }) => name).join(' ')
  const flags = options.map(({ flag }) => flag).join(' ')
  return `    '${path}') commands='${names}' options='${flags}' ;;\n`
}
