import type { TreeCommand } from './command_tree.js'

/** The completion for zsh, also after `npx` unless something else completes that: to be evaluated, or as a file _annals in a directory of fpath. */
export function zshCompletion(tree: TreeCommand[]): string {
  return `#compdef annals
# zsh completion of annals. In ~/.zshrc, after compinit: eval "$(annals completion zsh)"
_annals() {
  local at=annals i
  if [[ \${words[1]:t} == npx && \${words[2]} != annals ]]; then
    (( CURRENT > 2 )) || compadd -- annals
    _files
    return
  fi
  local -a commands options
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
${tree
  .slice(1)
  .map(({ path }) => `      '${path}') at='${path}' ;;\n`)
  .join('')}    esac
  done
  case "$at \${words[CURRENT-1]}" in
${tree.flatMap(valueCases).join('')}  esac
  case "$at" in
${tree.map(commandCase).join('')}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}
if [[ $funcstack[1] == _annals ]]; then _annals "$@"; else
  compdef _annals annals
  (( $+_comps[npx] )) || compdef _annals npx
fi
`
}

function valueCases({ path, options }: TreeCommand): string[] {
  return options.flatMap(({ flag, value }) => {
    if (value === 'none') return []
    const offer =
      typeof value === 'object'
        ? `compadd -- ${value.choices.join(' ')}; `
        : value === 'file'
          ? '_files; '
          : ''
    return [`    '${path} ${flag}') ${offer}return ;;\n`]
  })
}

function commandCase({ path, commands, options }: TreeCommand): string {
  const list = (items: [string, string][]) =>
    items.map(([name, description]) => quoted(`${name}:${description}`)).join(' ')
  return `    '${path}')
      commands=(${list(commands.map(({ name, description }) => [name, description]))})
      options=(${list(options.map(({ flag, description }) => [flag, description]))}) ;;
`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
