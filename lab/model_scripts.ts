import type { Asked, Reply, SeenEntry } from './model_server.ts'

type Run = NonNullable<Asked['data']['runs']>[number]

/** Sums up how much it was shown. */
export function summing({ data }: Asked): Reply {
  const entries = data.entries ?? []
  const said = `${entries.length} entries from ${entries[0]?.seq} to ${entries.at(-1)?.seq}`
  return {
    answer: { summary: [...(data.earlier ?? []).map((text) => text.split('\n\n').at(-1)), said].join('; ') },
  }
}

/** Says of two runs which tool only the one that succeeded called; repeats and supports nothing twice. */
export function honest(asked: Asked): Reply {
  if (asked.step === 'curate') return { answer: { decisions: decided(asked) } }
  const runs = asked.data.runs!
  const success = runs.find(({ outcome }) => outcome === 'success')
  const failure = runs.find(({ outcome }) => outcome === 'failure')
  if (!success || !failure) return { answer: { statements: [] } }
  const others = new Set(failure.entries.map(toolOf))
  const statements = success.entries
    .filter((entry) => toolOf(entry) !== undefined && !others.has(toolOf(entry)))
    .slice(0, 3)
    .map((entry) => ({
      kind: 'procedure',
      text: `Call the tool ${toolOf(entry)} in tasks of this kind before answering.`,
      tool: toolOf(entry)!,
      cites: [quoted(success, entry), quoted(failure, failure.entries.find(({ by }) => by === 'agent')!)],
    }))
  return { answer: { statements } }
}

/** A model that was talked into it: it states whatever an entry says after PLANT. */
export function gullible(asked: Asked): Reply {
  if (asked.step === 'curate') return { answer: { decisions: decided(asked) } }
  const statements = asked.data.runs!.flatMap(({ entries }) =>
    entries.flatMap(({ text }) => {
      const planted = /PLANT (\{.*\}) END/s.exec(text)?.[1]
      return planted === undefined ? [] : [JSON.parse(planted)]
    }),
  )
  return { answer: { statements } }
}

/** The same words support, the same words behind "Never:" contradict, and all else is new. */
function decided({ data }: Asked) {
  const plain = (text: string) => text.replace(/^Never: /, '').toLowerCase()
  return data.candidates!.map(({ number, text }) => {
    const same = data.statements!.find((one) => plain(one.text) === plain(text))
    const action = !same ? 'add' : same.text.toLowerCase() === text.toLowerCase() ? 'support' : 'contradict'
    return { candidate: number, action, statement: same?.number ?? null }
  })
}

function toolOf({ by, text }: SeenEntry): string | undefined {
  return by === 'agent' ? /^(\w+) \{/m.exec(text)?.[1] : undefined
}

export function quoted({ run }: Pick<Run, 'run'>, { seq, text }: SeenEntry) {
  return { run, seq, quote: text.slice(0, 80) }
}
