import { useQuery } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import type { Json } from '../json/exact_json.ts'

export const FORMATS = ['openai', 'responses', 'anthropic', 'gemini', 'acontext'] as const
export type Format = (typeof FORMATS)[number]

export const FORMAT_NAMES: Record<Format, string> = {
  openai: 'OpenAI',
  responses: 'OpenAI Responses',
  anthropic: 'Anthropic',
  gemini: 'Gemini',
  acontext: 'Neutral',
}

/**
 * A session's messages are converted as one conversation, so all of them are read; of a long session, only its
 * beginning.
 */
const MESSAGES_MAX = 4_000

/** The messages in a provider's format, by id. Undefined: unconverted. */
export function useConverted(session_id: string, format: Format | undefined, last_seq: number) {
  const { annals, project_id } = useProject()
  return useQuery<Map<string, Json>>({
    queryKey: [project_id, 'converted', session_id, format, last_seq],
    enabled: format !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before) => before,
    queryFn: async ({ signal }) => {
      const messages = new Map<string, Json[]>()
      for await (const page of annals.sessions.messages(session_id, { format }, { signal }).pages()) {
        for (const [index, id] of page.ids.entries()) {
          const item = page.items[index] as Json
          const before = messages.get(id)
          if (before) before.push(item)
          else messages.set(id, [item])
        }
        if (messages.size >= MESSAGES_MAX) break
      }
      // A message that became several items is shown as a list.
      return new Map([...messages].map(([id, items]) => [id, items.length === 1 ? items[0]! : items]))
    },
  })
}
