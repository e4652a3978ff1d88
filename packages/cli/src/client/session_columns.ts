import { type Annals, AnnalsError, type Session } from '@annals/client'
import { outcomeOf } from '@annals/messages/session'
import { pairsOf, tellingKeys } from '../terminal/pairs.js'
import type { Column } from '../terminal/table.js'
import { agoOf, clockOf, dayOf } from '../terminal/times.js'

/** Sessions whose figures are read at the same time. */
const READ_AT_ONCE = 8
/** The shortest beginning of an id that a narrow terminal shows: the time to the millisecond. */
const ID_LENGTH_MIN = 13
/** From this width on, ids are whole. */
const WIDE = 130

/** Numbers that the service computes for a session; absent if it has been deleted since. */
interface Figures {
  entries: number
  tokens: number
}

/** The columns of a page of sessions; `counted`: with entries and tokens, which takes two requests for each session. */
export async function sessionColumns(
  annals: Annals,
  sessions: Session[],
  nameOf: (user_id: string | null) => string,
  { counted, width }: { counted: boolean; width: number },
): Promise<Column<Session>[]> {
  const isTelling = tellingKeys(sessions.map(({ configs }) => configs))
  const figures = counted ? await readFigures(annals, sessions) : undefined
  const figure = (name: keyof Figures) => ({
    title: name,
    text: ({ id }: Session) => String(figures!.get(id)?.[name] ?? '-'),
  })
  const id_length = width < WIDE ? distinctLength(sessions.map(({ id }) => id)) : undefined
  return [
    { title: 'session', text: ({ id }) => id.slice(0, id_length), style: 'cyan' },
    { title: 'user', text: ({ user_id }) => nameOf(user_id), shrinks: true },
    { title: 'created', text: ({ created_at }) => agoOf(created_at) },
    {
      title: 'at',
      text: ({ created_at }) => `${dayOf(created_at)} ${clockOf(created_at)}`,
      style: 'dim',
      from_width: WIDE,
    },
    { title: 'last entry', text: ({ updated_at }) => agoOf(updated_at), from_width: 110 },
    ...(sessions.some(outcome) ? [{ title: 'outcome', text: outcome, shrinks: true }] : []),
    ...(figures ? [figure('entries'), figure('tokens')] : []),
    { title: 'title', text: ({ configs }) => titleOf(configs, isTelling), shrinks: true },
  ]
}

function outcome({ configs }: Session): string {
  const { value, verdict = '' } = outcomeOf(configs) ?? {}
  return typeof value === 'string' ? value : verdict
}

/** What a table has of sessions beside the API's fields, for programs; `counted`: as in `sessionColumns`. */
export async function factsOf(annals: Annals, sessions: Session[], counted: boolean): Promise<object[]> {
  const figures = counted ? await readFigures(annals, sessions) : undefined
  return sessions.map((session) => ({
    title: typeof session.configs.title === 'string' ? session.configs.title : null,
    outcome: outcome(session) || null,
    ...figures?.get(session.id),
  }))
}

/** `configs.title`, else all configs: what they have in common with the others comes last. */
function titleOf(configs: Session['configs'], isTelling: (key: string) => boolean): string {
  const { title } = configs
  return typeof title === 'string' && title !== '' ? title : pairsOf(configs, isTelling)
}

async function readFigures(annals: Annals, sessions: Session[]): Promise<Map<string, Figures>> {
  const figures = new Map<string, Figures>()
  for (let from = 0; from < sessions.length; from += READ_AT_ONCE)
    await Promise.all(
      sessions.slice(from, from + READ_AT_ONCE).map(async ({ id }) => {
        try {
          const [newest, { total_tokens }] = await Promise.all([
            annals.sessions.timeline(id, { limit: 1, time_desc: true }).page(),
            annals.sessions.tokenCounts(id),
          ])
          figures.set(id, { entries: newest.items[0]?.seq ?? 0, tokens: total_tokens })
        } catch (error) {
          if (!(error instanceof AnnalsError)) throw error
        }
      }),
    )
  return figures
}

/** How many characters tell these ids apart. */
function distinctLength(ids: string[]): number {
  let length = ID_LENGTH_MIN
  while (new Set(ids.map((id) => id.slice(0, length))).size < ids.length) length += 1
  return length
}
