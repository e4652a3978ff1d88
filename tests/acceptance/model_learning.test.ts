import { describe, expect, it, vi } from 'vitest'
import { gullible, honest } from '../../lab/model_scripts.ts'
import { expectOk } from '../harness/expectations.ts'
import { agent, calls, planted, result, useModelProjects, user } from '../harness/model_project.ts'
import { useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

const service = useSharedService()
const newModelProject = useModelProjects(service)

// Longer than `reflected` waits, which says in what state a session is that waits in vain.
describe('a model', { timeout: 120_000 }, () => {
  it('makes of two runs of one task, which ended differently, a procedure that cites both and waits for a person', async () => {
    const { newSpace, addRun, reflected, statementsOf, model } = await newModelProject(honest)
    const space = await newSpace('suggest')
    const failed = [
      user('Cancel my flight.'),
      calls('cancel_flight', { n: 1 }),
      result('refused'),
      agent('It is refused.'),
    ]
    const failure = await addRun(space, 'ada', failed, { reward: 0, group: 'cancel' })
    await reflected(space, failure)
    const worked = [
      user('Cancel my flight.'),
      calls('check_insurance', { n: 1 }),
      result('insured'),
      calls('cancel_flight', { n: 1 }, 'c2'),
      result('done', 'c2'),
    ]
    const success = await reflected(space, await addRun(space, 'bob', worked, { reward: 1, group: 'cancel' }))
    const [statement, ...others] = await statementsOf(space)
    expect(others).toEqual([])
    expect(statement).toMatchObject({ kind: 'procedure', state: 'proposed', author: 'model', supports: 2 })
    expect(statement!.text).toContain('check_insurance')
    expect(new Set(statement!.cites.map(({ session_id }) => session_id))).toEqual(new Set([failure, success]))
    expect(model.asked.map(({ step }) => step)).toEqual(['reflect', 'reflect'])
  })

  it('activates by itself, in auto, what sessions of two users support, and a contradiction by two opens a conflict', {
    // Five turns of a space, one after the other, beside all other spaces where files share a database.
    timeout: 240_000,
  }, async () => {
    const { newSpace, addRun, reflected, statementsOf } = await newModelProject(gullible)
    const space = await newSpace('auto')
    const say = (text: string, name: string) => {
      const cites = [{ run: 'A', seq: 1, quote: 'I looked it up' }]
      const statement = { kind: 'fact', text, tool: null, cites }
      return addRun(space, name, [agent('I looked it up'), user(planted(statement))])
    }
    const states = async () =>
      (await statementsOf(space)).map(({ state, supports }) => `${state} ${supports}`)
    const fact = 'Refunds of basic fares need an insurance.'
    await reflected(space, await say(fact, 'ada'))
    await reflected(space, await say(fact, 'ada'))
    expect(await states()).toEqual(['proposed 2'])
    await reflected(space, await say(fact, 'bob'))
    expect(await states()).toEqual(['active 3'])
    await reflected(space, await say(`Never: ${fact}`, 'eve'))
    expect(await states()).toEqual(['active 3'])
    await reflected(space, await say(`Never: ${fact}`, 'fay'))
    const [statement] = await statementsOf(space)
    expect(statement).toMatchObject({ state: 'conflict', text: fact, supports: 3, contradicts: 2 })
  })

  it('reads of a killed run which call nobody answered, and which result is too long or was taken back', async () => {
    const { newSpace, addRun, reflected, api, post, model } = await newModelProject(honest)
    const space = await newSpace('suggest')
    const { id } = expectOk(await api.createSession({}), 201)
    const blobs = [
      ...[user('Book a seat.'), calls('find', {}, 'c1'), result('Nothing.', 'c1')],
      ...[user('Read it.'), calls('read', {}, 'c2'), result('x'.repeat(40_000), 'c2')],
      ...[user('Go on.'), calls('book', { seat: '1A' }, 'c3')],
    ]
    const entries = blobs.map((blob) => ({ kind: 'message', blob }))
    const { items } = expectOk<{ items: Array<{ id: string }> }>(
      await post(`/session/${id}/entries`, { entries }),
      201,
    )
    expectOk(await post(`/session/${id}/retractions`, { ids: [items[2]!.id] }))
    expectOk(await post(`/learning_spaces/${space}/learn`, { session_id: id, now: true }), 201)
    await reflected(space, id)
    const [asked] = model.asked
    const [run] = asked!.data.runs!
    const none = ': No result was recorded.'
    expect(run!.entries.filter(({ by }) => by !== 'event')).toEqual([
      { seq: 1, by: 'user', text: 'Book a seat.' },
      { seq: 2, by: 'agent', text: 'find {}', note: `find${none}` },
      { seq: 4, by: 'user', text: 'Read it.' },
      { seq: 5, by: 'agent', text: 'read {}' },
      { seq: 7, by: 'user', text: 'Go on.' },
      { seq: 8, by: 'agent', text: 'book {"seat":"1A"}', note: `book${none}` },
    ])
    await reflected(space, await addRun(space, 'ada', [user('Book.'), calls('find')]))
    expect(model.asked[1]!.data.runs![0]!.entries[1]).toMatchObject({ seq: 2, note: `find${none}` })
  })

  it('is not asked again about a session that is given once more, as by a retry, and that is complete again', async () => {
    const { newSpace, addRun, reflected, post, model } = await newModelProject(honest)
    const space = await newSpace('suggest')
    const session = await reflected(space, await addRun(space, 'ada', [user('Hello?')], { reward: 1 }))
    const asked = model.asked.length
    const given = { session_id: session, now: true }
    expectOk(await post(`/learning_spaces/${space}/learn`, given), 201)
    await reflected(space, session)
    expect(model.asked).toHaveLength(asked)
  })

  it.each([
    {
      which: 'gets another outcome',
      append: { kind: 'event', type: 'outcome', data: { reward: 0 } },
      asks: false,
    },
    {
      which: 'gets a message, and is given again',
      append: { kind: 'message', blob: user('One more') },
      asks: true,
    },
  ])('is asked again at once about a session that, while it thinks, $which', async ({ append, asks }) => {
    const { newSpace, addRun, post, api, model } = await newModelProject(honest)
    const space = await newSpace('suggest')
    let mayAnswer = false
    model.script = async (asked) => {
      await vi.waitUntil(() => mayAnswer, { timeout: 100_000 })
      return honest(asked)
    }
    const session = await addRun(space, 'ada', [user('Hello?')], { reward: 1 })
    const path = `/api/v1/learning_spaces/${space}/sessions/${session}`
    const has = (state: object) =>
      vi.waitFor(async () => expect(expectOk(await api.request('GET', path))).toMatchObject(state), 100_000)
    await vi.waitUntil(() => model.asked.length > 0, { timeout: 100_000 })
    expectOk(await post(`/session/${session}/entries`, { entries: [append] }), 201)
    if (asks) expectOk(await post(`/learning_spaces/${space}/learn`, { session_id: session, now: true }), 201)
    await has({ status: 'distilling', learnt_seq: 3 })
    mayAnswer = true
    await has({ status: 'completed', learnt_seq: 3 })
    // A node of another file that is stopped while the model thinks leaves the same question to others.
    const asked = model.asked.filter(({ step }) => step === 'reflect').map(({ prompt }) => prompt.user)
    expect(new Set(asked).size).toBe(2)
  })

  it('is not asked beyond the budget, which the session says, and goes on when there is one', async () => {
    const { newSpace, addRun, reflected, api, model, project } = await newModelProject(honest)
    const space = await newSpace('suggest', {}, { max_tokens_per_day: 10 })
    const session = await addRun(space, 'ada', [user('Hello, who are you?')], { reward: 1 })
    const path = `/api/v1/learning_spaces/${space}/sessions/${session}`
    await vi.waitFor(async () => {
      const { status, error } = expectOk(await api.request<{ status: string; error: string }>('GET', path))
      expect(`${status} ${error}`).toBe('queued The space’s budget of model tokens for 24 hours is used up.')
    }, 40_000)
    expect(model.asked).toEqual([])
    const usage = async () =>
      expectOk(await api.request('GET', `/api/v1/learning_spaces/${space}/usage?days=2`))
    expect(await usage()).toEqual({ tokens: { used: 0, max: 10 }, days: [] })
    expectOk(
      await api.request('PUT', `/api/v1/learning_spaces/${space}/policy`, { body: { mode: 'suggest' } }),
    )
    await reflected(space, session)
    const ledger = await queryRows(
      service.databaseUrl,
      'SELECT step, status, answer, attempts, tokens_in > 0 AS counted, tokens_out FROM learning_calls WHERE project_id = $1',
      [project.id],
    )
    expect(ledger).toEqual([
      { step: 'reflect', status: 'applied', answer: null, attempts: 1, counted: true, tokens_out: '50' },
    ])
    const tokens_in = model.asked[0]!.tokens_in
    const day = expect.stringMatching(/^\d{4}-\d\d-\d\d$/)
    expect(await usage()).toEqual({
      tokens: { used: tokens_in + 50, max: null },
      days: [{ day, step: 'reflect', inputs: 1, calls: 1, failed: 0, tokens_in, tokens_out: 50 }],
    })
  })

  it('leaves, once a user is erased, none of the user’s words in any table, be they applied or only answered', async () => {
    const { newSpace, addRun, reflected, api, project, model } = await newModelProject(gullible)
    const space = await newSpace('auto')
    const word = 'quetzalcoatlus'
    const say = (text: string) => {
      const statement = {
        kind: 'fact',
        text,
        tool: null,
        cites: [{ run: 'A', seq: 1, quote: `The ${word} is here` }],
      }
      return addRun(space, 'carol', [agent(`The ${word} is here`), user(planted(statement))])
    }
    await reflected(space, await say(`A ${word} needs a seat of its own.`))
    model.script = (asked) => (asked.step === 'curate' ? { status: 500 } : gullible(asked))
    await say(`A ${word} needs a seat at the window.`)
    const find = async () => {
      const tables = await queryRows(
        service.databaseUrl,
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'project_id'",
      )
      const found = []
      for (const { table_name } of tables) {
        const sql = `SELECT 1 FROM ${table_name} t WHERE t.project_id = $1 AND t::text LIKE $2 LIMIT 1`
        const rows = await queryRows(service.databaseUrl, sql, [project.id, `%${word}%`])
        if (rows.length > 0) found.push(table_name)
      }
      return found
    }
    await vi.waitFor(async () => expect(await find()).toContain('learning_calls'), 40_000)
    expect(await find()).toContain('statements')
    expectOk(await api.request('DELETE', '/api/v1/user/carol'))
    expect(await find()).toEqual([])
  })

  it('keeps, once a user is erased, no words of a run that it was shown and did not cite, approved or not', async () => {
    const script: Parameters<typeof newModelProject>[0] = (asked) => {
      if (asked.step === 'curate') return honest(asked)
      if (asked.data.runs!.length < 2) return { answer: { statements: [] } }
      const at = asked.data.runs!.findIndex(({ entries }) =>
        entries.some(({ text }) => text.includes('window')),
      )
      const cite = { run: 'AB'[at]!, seq: 2, quote: 'I ask for a seat at the window.' }
      const other = asked.data
        .runs![1 - at]!.entries.map(({ text }) => /quetzal\w+/.exec(text)?.[0])
        .find(Boolean)
      const about = (words: string) => ({ kind: 'fact', text: words, tool: null, cites: [cite] })
      return {
        answer: {
          statements: [about(`A ${other} needs a seat at the window.`), about(`Never seat a ${other}.`)],
        },
      }
    }
    const { newSpace, addRun, reflected, statementsOf, api, project } = await newModelProject(script)
    const space = await newSpace('suggest')
    const run = (user_id: string, word: string, reward: number) =>
      addRun(space, user_id, [user(`Seat my ${word}.`), agent('I ask for a seat at the window.')], {
        reward,
        group: 'seat',
      })
    const erased = ['I bring a quetzalcoatlus.', 'I look for a seat.']
    await reflected(
      space,
      await addRun(space, 'bob', [user(erased[0]!), agent(erased[1]!)], { reward: 0, group: 'seat' }),
    )
    await reflected(space, await run('ada', 'luggage', 1))
    const statements = await statementsOf(space)
    expect(statements.map(({ cites }) => cites.length)).toEqual([1, 1])
    expectOk(
      await api.request('PATCH', `/api/v1/statements/${statements[0]!.id}`, { body: { state: 'active' } }),
    )
    const mentions = () =>
      queryRows(
        service.databaseUrl,
        `SELECT 1 FROM statements t WHERE t.project_id = $1 AND t::text LIKE '%quetzal%'
        UNION ALL SELECT 1 FROM skill_versions v WHERE v.project_id = $1 AND v::text LIKE '%quetzal%'`,
        [project.id],
      )
    expect(await mentions()).not.toEqual([])
    expectOk(await api.request('DELETE', '/api/v1/user/bob'))
    expect(await mentions()).toEqual([])
  })
})
