import type { TreeCommand } from './command_tree.js'

/** The completion for fish, also after `npx`. */
export function fishCompletion(tree: TreeCommand[]): string {
  return `# fish completion of annals. In ~/.config/fish/config.fish: annals completion fish | source
function __annals_at
  set -l at annals
  for word in (commandline -opc)[2..-1]
    switch "$at $word"
${tree
  .slice(1)
  .map(({ path }) => `      case '${path}'\n        set at '${path}'\n`)
  .join('')}    end
  end
  test "$at" = "$argv[1]"
end
function __annals_behind_npx
  set -l words (commandline -opc)
  test (count $words) -ge 2; and test "$words[2]" = annals
end
complete -c npx -n __annals_behind_npx -f -a '(complete -C (commandline -cp | string replace -r "^.*?npx\\\\s+" ""))'
complete -c npx -n 'test (count (commandline -opc)) -eq 1' -a annals
complete -c annals -f
${tree.flatMap(linesOf).join('')}`
}

function linesOf({ path, commands, options, takes_file }: TreeCommand): string[] {
  const begin = `complete -c annals -n ${quoted(`__annals_at ${quoted(path)}`)}`
  return [
    ...commands.map(({ name, description }) => `${begin} -a ${name} -d ${quoted(description)}\n`),
    ...options.map(({ flag, description, value }) => {
      const takes =
        value === 'none'
          ? ''
          : typeof value === 'object'
            ? ` -x -a ${quoted(value.choices.join(' '))}`
            : value === 'file'
              ? ' -r -F'
              : ' -x'
      return `${begin} -l ${flag.slice(2)}${takes} -d ${quoted(description)}\n`
    }),
    ...(takes_file ? [`${begin} -F\n`] : []),
  ]
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
