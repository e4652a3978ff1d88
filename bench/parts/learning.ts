import { setTimeout as sleep } from 'node:timers/promises'
import { hasOutcomeEvidence } from '@annals/learning'
import { findByTask } from '@annals/recall'
import { gullible, honest } from '../../lab/model_scripts.ts'
import { startModelServer } from '../../lab/model_server.ts'
import { POISON } from '../../lab/poison.ts'
import { seededRandom } from '../../lab/random.ts'
import { BenchFailure } from '../failure.ts'
import { expectedErrors, killWhileLearning, Learner, wordsOfUser } from '../learning_runs.ts'
import { runLoad } from '../load.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import { type Run, recordedRuns } from '../recorded_runs.ts'
import { interleave, ratios } from '../rounds.ts'
import { appendsTo, callApi, createSessions } from '../sessions.ts'

const SHUFFLES = 20

function share(name: string, value: number, at_least: number): Figure {
  return { name, unit: 'ratio', better: 'higher', values: [value], at_least }
}

/** What learning spaces make of recorded runs, of poisoned ones, and of a model that is killed beside. */
export const learning: Part = {
  name: 'learning',
  describe:
    'what learning spaces make of recorded runs (AIRLINE_RUNS names their file), and what it costs appends',
  run: async (ctx) => {
    const all = recordedRuns()
    // Several runs of each of a few tasks.
    const runs = ctx.quick ? all.toSorted((a, b) => Number(a.group) - Number(b.group)).slice(0, 12) : all
    const model = await startModelServer(honest)
    ctx.atEnd(() => model.close())
    const env = {
      ANNALS_MODEL_URL: model.url,
      ANNALS_MODEL: 'scripted',
      ANNALS_MODEL_MS_MAX: '1000',
      ANNALS_MODEL_TOKENS_PER_DAY_MAX: '1000000000',
    }
    const database = await ctx.createDatabase()
    const learner = new Learner(await ctx.startService(database, env), database)
    ctx.atEnd(() => learner.close())
    const learnt = await learnShuffled(ctx, learner, runs)
    model.script = gullible
    const poisoned = await poison(learner)
    const erased = await eraseUser(ctx, learner, runs)
    const kills = ctx.quick ? 1 : 20
    ctx.say(`killing ${kills} times`)
    const again = await killWhileLearning(ctx, model, env, kills)
    ctx.detail(
      `procedures with evidence in ${ctx.some(1_000)} shuffles, of all tools`,
      survivorsOf(runs, ctx.some(1_000)),
    )
    return [
      ...learnt,
      ...sameTask(runs),
      poisoned,
      none(`rewards shuffled ${SHUFFLES} times: procedures with evidence, of all tools`, survivorsOf(runs)),
      erased,
      none(`inputs sent again though they were answered, over ${kills} kills`, again),
      await appends(ctx),
    ]
  },
}

/** What must not be. */
function none(name: string, value: number): Figure {
  return { ...share(name, value, 0), better: 'lower' }
}

/** Learns from the runs, with rewards that mean nothing. */
async function learnShuffled(ctx: BenchContext, learner: Learner, runs: readonly Run[]): Promise<Figure[]> {
  ctx.say(`learning from ${runs.length} runs`)
  const space = await learner.newSpace('auto')
  const rewards = shuffledRewards(runs, 1)
  const sessions = await learner.learn(
    space,
    runs.map((run, index) => ({ ...run, reward: rewards[index]! })),
  )
  const statements = await learner.statements(space)
  const citing = new Set(
    statements.map(({ cites }) => `${[...new Set(cites.map(({ session_id }) => session_id))].sort()}`),
  )
  const expected = expectedErrors(runs)
  const found = expected.filter((places) => citing.has(`${places.map((place) => sessions[place]!).sort()}`))
  const procedures = statements.filter(({ kind }) => kind === 'procedure')
  const active = procedures.filter(({ state }) => state === 'active').length
  return [
    share(
      `statements whose every quote is in the entry that they cite, of ${statements.length}`,
      await learner.rightQuotes(statements),
      1,
    ),
    share(
      `recurring errors found by rules, each with all its sessions, of ${expected.length}`,
      found.length / expected.length,
      1,
    ),
    none(`rewards shuffled within tasks, ${procedures.length} procedures in mode auto: active`, active),
  ]
}

async function poison(learner: Learner): Promise<Figure> {
  const space = await learner.newSpace('auto')
  const runs = POISON.map(({ by, blobs, outcome }) => ({
    user: by,
    messages: blobs as Run['messages'],
    ...outcome,
  }))
  await learner.learn(space, runs)
  const statements = await learner.statements(space)
  const active = statements.filter(({ state }) => state === 'active').length
  return none(`poisoned sessions, ${POISON.length} in mode auto: active statements`, active)
}

async function eraseUser(ctx: BenchContext, learner: Learner, runs: readonly Run[]): Promise<Figure> {
  const { user } = runs[0]!
  ctx.say(`erasing ${user}`)
  const words = wordsOfUser(runs, user)
  if ((await learner.occurrences(words)) === 0)
    throw new BenchFailure('The words of the user are nowhere, so erasing them shows nothing.')
  await callApi(learner.service, { method: 'DELETE', path: `/api/v1/user/${user}` })
  const name = `after erasing a user: rows of the database with one of ${words.length} words of the user`
  return none(name, await learner.occurrences(words))
}

/** The runs' rewards, permuted among those of each task. */
function shuffledRewards(runs: readonly Run[], seed: number): number[] {
  const random = seededRandom(seed)
  const rewards = new Map<string, number[]>()
  for (const { group, reward } of runs) rewards.set(group!, [...(rewards.get(group!) ?? []), reward!])
  for (const [group, list] of rewards) rewards.set(group, random.shuffled(list))
  return runs.map(({ group }) => rewards.get(group!)!.pop()!)
}

/** How many procedures of the form "call this tool" would have evidence, of all tools, over so many shuffles. */
function survivorsOf(runs: readonly Run[], shuffles = SHUFFLES): number {
  const called = runs.map(
    ({ messages }) =>
      new Set(messages.flatMap(({ tool_calls }) => (tool_calls ?? []).map((one) => one.function.name))),
  )
  const tools = new Set(called.flatMap((names) => [...names]))
  let survivors = 0
  for (let seed = 1; seed <= shuffles; seed++) {
    const rewards = shuffledRewards(runs, seed)
    for (const tool of tools)
      if (
        hasOutcomeEvidence(
          runs.map(({ group }, index) => ({
            group: group!,
            has_succeeded: rewards[index]! >= 0.5,
            follows: called[index]!.has(tool),
          })),
        )
      )
        survivors++
  }
  return survivors
}

/** Whether a run of the same task is found by the first two messages of the user. */
function sameTask(runs: readonly Run[]): Figure[] {
  const text = ({ messages }: Run) =>
    messages
      .filter(({ role }) => role === 'user')
      .slice(0, 2)
      .map(({ content }) => content)
      .join('\n')
  const asked = runs.filter((run) => runs.some((other) => other !== run && other.group === run.group))
  const find = findByTask(runs, text)
  const hits = [0, 0]
  for (const run of asked) {
    const near = find(text(run))
      .filter((other) => other !== run)
      .slice(0, 3)
    hits[0]! += Number(near[0]?.group === run.group)
    hits[1]! += Number(near.some(({ group }) => group === run.group))
  }
  const name = 'a run of the same task found from the first two messages'
  return [
    share(`${name}: at 1`, hits[0]! / asked.length, 0.85),
    share(`${name}: at 3`, hits[1]! / asked.length, 0.93),
  ]
}

/** Appends to sessions that a space learns from, by rules, against appends where nothing is learnt. */
async function appends(ctx: BenchContext): Promise<Figure> {
  const sides = await Promise.all(
    [true, false].map(async (is_attached) => {
      const database = await ctx.createDatabase()
      const service = await ctx.startService(database)
      const sessions = await createSessions(service, ctx.some(200))
      if (is_attached) {
        const { id } = await callApi<{ id: string }>(service, {
          method: 'POST',
          path: '/api/v1/learning_spaces',
          body: '{}',
        })
        for (const session_id of sessions)
          await callApi(service, {
            method: 'POST',
            path: `/api/v1/learning_spaces/${id}/learn`,
            body: JSON.stringify({ session_id }),
          })
      }
      const load = (seconds: number) => () =>
        runLoad({
          services: [service],
          connections: 64,
          seconds,
          requests: appendsTo(sessions),
          status: 200,
          cpu_of: { database },
        })
      await ctx.warmUp(load(Math.min(ctx.seconds, 2)))
      return load(ctx.seconds)
    }),
  )
  if (!ctx.quick) await sleep(7_000)
  const runs = await interleave(ctx.rounds, { attached: sides[0]!, plain: sides[1]! }, ctx.say)
  const rate = (name: 'attached' | 'plain') => runs[name]!.map(({ per_second }) => per_second)
  return {
    name: 'appends to sessions that a space learns from ÷ to others',
    unit: 'ratio',
    better: 'higher',
    values: ratios(rate('attached'), rate('plain')),
    at_least: 0.85,
    aim: 1,
  }
}
