import { type Annals, AnnalsError, type Session } from '@annals/client'
import { type OutcomeWords, SessionReader, sessionTitle, shownOutcome } from '@annals/messages/session'
import { pairsOf, tellingKeys } from '../terminal/pairs.js'
import { shortIds, WIDE } from '../terminal/short_ids.js'
import type { Column } from '../terminal/table.js'
import { agoOf, clockOf, dayOf } from '../terminal/times.js'

/** Sessions whose figures are read at the same time. */
const READ_AT_ONCE = 8
/** Entries searched for a title: events and a system prompt may precede the user's first message. */
const TITLE_WITHIN = 10

/** A session's figures; absent if it has been deleted since. */
interface Figures {
  entries: number
  tokens: number
  /** What it is called by its configs, or else what its user said first. */
  title: string | undefined
  /** When its first and its last entry happened; null without any. */
  began_at: string | null
  ended_at: string | null
}

/** How sessions are shown: their project's words, and whether their logs are read, with up to three requests each. */
export interface ShownHow {
  words: OutcomeWords
  counted: boolean
}

/** The columns of a page of sessions. */
export async function sessionColumns(
  annals: Annals,
  sessions: Session[],
  nameOf: (user_id: string | null) => string,
  { counted, width, words }: ShownHow & { width: number },
): Promise<Column<Session>[]> {
  const isTelling = tellingKeys(sessions.map(({ configs }) => configs))
  const figures = counted ? await readFigures(annals, sessions) : undefined
  const figure = (name: 'entries' | 'tokens') => ({
    title: name,
    text: ({ id }: Session) => figures!.get(id)?.[name].toLocaleString('en') ?? '-',
  })
  const outcome = ({ configs }: Session) => outcomeText(configs, words)
  const began = figures ? 'began' : 'created'
  const beganAt = ({ id, created_at }: Session) => figures?.get(id)?.began_at ?? created_at
  const shortId = shortIds(
    sessions.map(({ id }) => id),
    width,
  )
  return [
    { title: 'session', text: ({ id }) => shortId(id), style: 'cyan' },
    { title: 'user', text: ({ user_id }) => nameOf(user_id), shrinks: true },
    { title: began, text: (session) => agoOf(beganAt(session)) },
    {
      title: `${began} at`,
      text: (session) => `${dayOf(beganAt(session))} ${clockOf(beganAt(session))}`,
      style: 'dim',
      from_width: WIDE,
    },
    {
      title: 'last entry',
      text: ({ id, updated_at }) => agoOf(figures?.get(id)?.ended_at ?? updated_at),
      from_width: 110,
    },
    ...(sessions.some(outcome) ? [{ title: 'outcome', text: outcome, shrinks: true }] : []),
    ...(figures ? [figure('entries'), figure('tokens')] : []),
    {
      title: 'title',
      text: ({ id, configs }) => figures?.get(id)?.title ?? titleOf(configs, isTelling),
      shrinks: true,
    },
  ]
}

/** How a session ended, with what only its project knows that it means; empty if nobody knows. */
export function outcomeText(configs: Session['configs'], words: OutcomeWords): string {
  const { word = '', verdict } = shownOutcome(configs, words) ?? {}
  return shownOutcome(configs)?.verdict === verdict ? word : `${word} (${verdict})`
}

/** Fields of sessions that a table adds to the API's, for programs. */
export async function factsOf(
  annals: Annals,
  sessions: Session[],
  { counted, words }: ShownHow,
): Promise<object[]> {
  const figures = counted ? await readFigures(annals, sessions) : undefined
  return sessions.map(({ id, configs }) => {
    const { word = null, verdict } = shownOutcome(configs, words) ?? {}
    const read = figures?.get(id)
    return {
      ...read,
      title: read?.title ?? sessionTitle(configs, []) ?? null,
      outcome: word,
      verdict: verdict === 'other' ? null : (verdict ?? null),
    }
  })
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
      sessions.slice(from, from + READ_AT_ONCE).map(async ({ id, configs }) => {
        try {
          const [bounds, { total_tokens }] = await Promise.all([
            readBounds(annals, { id, configs }),
            annals.sessions.tokenCounts(id),
          ])
          figures.set(id, { ...bounds, tokens: total_tokens })
        } catch (error) {
          if (!(error instanceof AnnalsError)) throw error
        }
      }),
    )
  return figures
}

/** What the first and the last entries of a session tell of it. */
export async function readBounds(
  annals: Annals,
  { id, configs }: Pick<Session, 'id' | 'configs'>,
): Promise<Omit<Figures, 'tokens'>> {
  const [{ items }, { items: newest }] = await Promise.all([
    annals.sessions.timeline(id, { limit: TITLE_WITHIN }).page(),
    annals.sessions.timeline(id, { limit: 1, time_desc: true }).page(),
  ])
  const last = newest[0]
  // What describes a session may stand first, and be younger than what was said.
  const began = items.slice(0, 3).map(({ occurred_at, created_at }) => occurred_at ?? created_at)
  const reader = new SessionReader()
  return {
    entries: last?.seq ?? 0,
    title: sessionTitle(
      configs,
      items.map((item) => reader.read(item)),
    ),
    began_at: began.sort()[0] ?? null,
    ended_at: last?.occurred_at ?? last?.created_at ?? null,
  }
}
