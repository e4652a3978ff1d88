import { existsSync, readFileSync } from 'node:fs'
import { formsOf, type Lines, lineOf, type Question, readQuestion, scoreLines } from '@annals/recall'
import { BenchFailure } from '../failure.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import { recordedRuns } from '../recorded_runs.ts'
import { ROOT } from '../root.ts'
import { newProject, type SearchedProject, switchSearchOn, untilIndexed } from '../searched_project.ts'
import { callApi } from '../sessions.ts'

/** Entries in a row of the index. */
const RUN = 16
const SESSIONS = 5
const TURNS = 10
const WRITERS = 2

interface Turn {
  speaker: string
  text: string
  dia_id: string
  blip_caption?: string
}

interface Conversation {
  sample_id: string
  conversation: Record<string, string | Turn[]>
  qa: Array<{ question: string; category: number; evidence?: string[] }>
}

interface Sitting {
  user: string
  name: string
  /** When it was, in ms. */
  at: number
  messages: Array<{ role: 'user' | 'assistant'; content: string; id: string }>
}

/** A question, and where what answers it was said: sessions and seqs. */
interface Asked {
  user: string
  question: string
  evidence: Array<{ session: string; seq: number }>
}

interface Answer {
  sessions: string[]
  entries: Array<{ session: string; seq: number }>
}

/** How often a question leads to the session and to the turn that answer it. */
export const recall: Part = {
  name: 'recall',
  describe:
    'questions in plain words about conversations whose answers are known (LOCOMO: their file) and recorded runs',
  run: async (ctx) => {
    const { sittings, asked } = conversations(ctx.quick ? 2 : undefined)
    const questions = ctx.quick ? asked.slice(0, 20) : asked
    ctx.say(`${questions.length} questions about ${sittings.length} sessions, in memory`)
    const model = inMemory(sittings)
    const scored = await rates(questions, async (one) => model(one))
    const timeless = inMemory(sittings.map(({ at: _unknown, ...sitting }) => sitting))
    const scoredWithout = await rates(questions, async (one) => timeless(one))
    ctx.say('and through the API')
    const served = await throughApi(ctx, sittings)
    const answered = await rates(questions, served)
    ctx.say('questions about recorded runs')
    return [
      ...figures('in memory', scored),
      ...figures('in memory, times unknown', scoredWithout),
      ...figures('API', answered),
      await aboutRecordedRuns(ctx),
    ]
  },
}

function conversations(count?: number): { sittings: Sitting[]; asked: Asked[] } {
  const path = process.env.LOCOMO ?? `${ROOT}../shared/data/locomo/conversations.json`
  if (!existsSync(path))
    throw new BenchFailure(`There are no conversations at ${path}: LOCOMO names their file.`)
  const sittings: Sitting[] = []
  const asked: Asked[] = []
  const all = JSON.parse(readFileSync(path, 'utf8')) as Conversation[]
  for (const { sample_id, conversation, qa } of all.slice(0, count)) {
    const places = new Map<string, { session: string; seq: number }>()
    for (const [name, turns] of Object.entries(conversation)) {
      if (!/^session_\d+$/.test(name) || !Array.isArray(turns)) continue
      const session = `${sample_id} ${name}`
      const messages = turns.map((turn) => messageOf(turn, conversation.speaker_a as string))
      const at = timeOf(conversation[`${name}_date_time`] as string)
      sittings.push({ user: sample_id, name: session, at, messages })
      for (const [index, { id }] of messages.entries()) places.set(id, { session, seq: index + 1 })
    }
    for (const { question, category, evidence = [] } of qa) {
      const found = evidence.flatMap((ids) => ids.split(/[;,\s]+/)).flatMap((id) => places.get(id) ?? [])
      if (category !== 5 && found.length > 0) asked.push({ user: sample_id, question, evidence: found })
    }
  }
  return { sittings, asked }
}

/** `1:56 pm on 8 May, 2023`, in ms. */
function timeOf(text: string): number {
  const [, time, half, day] = /^(\d+:\d+) ([ap]m) on (.*)$/.exec(text)!
  return Date.parse(`${day} ${time} ${half} UTC`)
}

function messageOf({ speaker, text, dia_id, blip_caption }: Turn, user: string): Sitting['messages'][number] {
  const shared = blip_caption === undefined ? '' : ` [shares ${blip_caption}]`
  return {
    role: speaker === user ? 'user' : 'assistant',
    content: `${speaker}: ${text}${shared}`,
    id: dia_id,
  }
}

/** The scoring of the service, over all lines of a user: what changes of its constants do is seen in a minute. */
function inMemory(sittings: readonly (Omit<Sitting, 'at'> & { at?: number })[]): (asked: Asked) => Answer {
  const runs = new Map<string, Lines[]>()
  const lines: Set<string>[] = []
  for (const { user, name, at: happened, messages } of sittings) {
    const texts = messages.map(({ role, content }) => `@${role} ${lineOf(content)}`)
    lines.push(...texts.map((text) => new Set(text.split(' '))))
    const ofUser = runs.get(user) ?? []
    runs.set(user, ofUser)
    for (let at = 0; at < texts.length; at += RUN)
      ofUser.push({
        session_id: name,
        seq: at + 1,
        words: texts.slice(at, at + RUN).join('\n'),
        ...(happened === undefined ? {} : { at: happened }),
      })
  }
  const weightOf = (word: Question['words'][number]) => {
    const forms = formsOf(word)
    const count = lines.filter((line) => forms.some(({ form }) => line.has(form))).length
    return Math.log(1 + (lines.length - count + 0.5) / (count + 0.5))
  }
  return ({ user, question: asked }) => {
    const question = readQuestion(asked)
    const { sessions, entries } = scoreLines(runs.get(user)!, question, question.words.map(weightOf))
    return {
      sessions: sessions.slice(0, SESSIONS).map(({ session_id }) => session_id),
      entries: entries.slice(0, TURNS).map(({ session_id, seq }) => ({ session: session_id, seq })),
    }
  }
}

/** Stores the sittings, each as a session, and asks the service. */
async function throughApi(
  ctx: BenchContext,
  sittings: readonly Sitting[],
): Promise<(asked: Asked) => Promise<Answer>> {
  const started = await ctx.startService(await ctx.createDatabase())
  const project = await newProject(started, 'conversations')
  const { service } = project
  await switchSearchOn(project)
  const names = new Map<string, string>()
  const left = [...sittings]
  const store = async () => {
    for (let sitting = left.pop(); sitting; sitting = left.pop())
      names.set(await storeSitting(service, sitting), sitting.name)
  }
  await Promise.all(Array.from({ length: WRITERS }, store))
  await untilIndexed(project)
  const ask = async <Item>(q: string, user: string, group: string, limit: number) => {
    const query = new URLSearchParams({ mode: 'recall', q, user, group, limit: String(limit) })
    return (await callApi<{ items: Item[] }>(service, { method: 'GET', path: `/api/v1/search?${query}` }))
      .items
  }
  type Found = { session_id: string; seq: number }
  return async ({ question, user }) => {
    const [sessions, entries] = await Promise.all([
      ask<Found>(question, user, 'session', SESSIONS),
      ask<Found>(question, user, 'entry', TURNS),
    ])
    return {
      sessions: sessions.map(({ session_id }) => names.get(session_id)!),
      entries: entries.map(({ session_id, seq }) => ({ session: names.get(session_id)!, seq })),
    }
  }
}

/** A question about a task that agents were given, or about what was said in a run, or both. */
interface RecordedQuestion {
  question: string
  tasks?: number[]
  says?: string
}

/** How often one of the first sessions is a run that a question is about. */
async function aboutRecordedRuns(ctx: BenchContext): Promise<Figure> {
  const project = await newProject(await ctx.startService(await ctx.createDatabase()), 'recorded runs')
  await switchSearchOn(project)
  const runs = new Map<string, { task: number; text: string }>()
  for (const { user, group, messages } of recordedRuns().slice(0, ctx.quick ? 20 : undefined)) {
    const blobs = messages.map((message) => ({ content: null, ...message }))
    const id = await storeSession(project.service, user, blobs)
    runs.set(id, { task: Number(group), text: JSON.stringify(messages) })
  }
  await untilIndexed(project)
  const path = `${ROOT}bench/recorded_questions.json`
  const recorded = JSON.parse(readFileSync(path, 'utf8')) as RecordedQuestion[]
  const questions = recorded.slice(0, ctx.quick ? 10 : undefined)
  let found = 0
  for (const { question, tasks, says } of questions) {
    const query = new URLSearchParams({ mode: 'recall', q: question, limit: String(SESSIONS) })
    const request = { method: 'GET', path: `/api/v1/search?${query}` } as const
    const { items } = await callApi<{ items: { session_id: string }[] }>(project.service, request)
    const isAsked = ({ task, text }: { task: number; text: string }) =>
      (tasks?.includes(task) ?? true) && (says === undefined || text.includes(says))
    if (items.some(({ session_id }) => isAsked(runs.get(session_id)!))) found += 1
    else ctx.say(`not among the first ${SESSIONS}: ${question}`)
  }
  const name = 'a recorded run that a question is about among the first 5 (API)'
  const values = [found / questions.length]
  return { name, unit: 'ratio', better: 'higher', values, at_least: 0.9, aim: 0.97 }
}

async function storeSitting(
  service: SearchedProject['service'],
  { user, at, messages }: Sitting,
): Promise<string> {
  return storeSession(
    service,
    user,
    messages.map(({ role, content }) => ({ role, content })),
    at,
  )
}

async function storeSession(
  service: SearchedProject['service'],
  user: string,
  blobs: object[],
  at?: number,
): Promise<string> {
  const body = JSON.stringify({ user })
  const { id } = await callApi<{ id: string }>(service, { method: 'POST', path: '/api/v1/session', body })
  const entries = blobs.map((blob) => ({
    kind: 'message',
    format: 'openai',
    blob,
    ...(at === undefined ? {} : { occurred_at: new Date(at).toISOString() }),
  }))
  const path = `/api/v1/session/${id}/entries`
  await callApi(service, { method: 'POST', path, body: JSON.stringify({ entries }) })
  return id
}

interface Rates {
  any: number
  all: number
  turn: number
}

async function rates(questions: readonly Asked[], answer: (asked: Asked) => Promise<Answer>): Promise<Rates> {
  const counts: Rates = { any: 0, all: 0, turn: 0 }
  for (const asked of questions) {
    const { sessions, entries } = await answer(asked)
    const wanted = new Set(asked.evidence.map(({ session }) => session))
    const found = [...wanted].filter((session) => sessions.includes(session)).length
    if (found > 0) counts.any += 1
    if (found === wanted.size) counts.all += 1
    const isEvidence = (entry: Answer['entries'][number]) =>
      asked.evidence.some(({ session, seq }) => session === entry.session && seq === entry.seq)
    if (entries.some(isEvidence)) counts.turn += 1
  }
  const share = (count: number) => count / questions.length
  return { any: share(counts.any), all: share(counts.all), turn: share(counts.turn) }
}

function figures(where: string, { any, all, turn }: Rates): Figure[] {
  const figure = (name: string, value: number, at_least: number, aim: number): Figure => {
    return { name: `${name} (${where})`, unit: 'ratio', better: 'higher', values: [value], at_least, aim }
  }
  return [
    figure('a session with evidence among the first 5', any, 0.92, 0.95),
    figure('all sessions with evidence among the first 5', all, 0.8, 0.85),
    figure('a turn of the evidence among the first 10', turn, 0.74, 0.8),
  ]
}
