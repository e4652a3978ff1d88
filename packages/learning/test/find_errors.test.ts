import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { LogEntry } from '@annals/messages/session'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorExcerpt, errorTemplate, findErrors } from '../src/index.js'

/** Runs of a real agent, one JSON object a line, in OpenAI's format. They are not in this repository. */
const ROOT = new URL('../../../', import.meta.url)
const RUNS = fileURLToPath(new URL(process.env.ANNALS_RUNS ?? '../shared/data/airline-runs.jsonl', ROOT))

interface Run {
  configs: { task_id: number }
  messages: object[]
}

function logOf(messages: object[]): LogEntry[] {
  return messages.map((blob, index) => ({
    kind: 'message',
    seq: index + 1,
    created_at: '2026-01-01T00:00:00.000000Z',
    id: `m${index}`,
    parent_id: null,
    role: 'user',
    format: 'openai',
    blob,
  }))
}

const called = (id: string, name: string, given: object) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(given) } }],
})
const answered = (tool_call_id: string, content: string) => ({ role: 'tool', tool_call_id, content })

describe('the template of an error', () => {
  it.each([
    ['Error: total is 375, but paid 299', 'total is …, but paid …'],
    ["KeyError: 'omar' is not a user", 'KeyError: … is not a user'],
    ['Error: the seat of a@b.example is taken', 'the seat of … is taken'],
    ["It can't be done, and doesn't work", "It can't be done, and doesn't work"],
    ['{"error":{"message":"no such file /a/b.txt"}}', 'no such file …'],
    ['\n\nError: 42', ''],
    ['', ''],
    // Commands, as agents report them.
    ['Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such door: 7\n', 'no such door: …'],
    ['Exit code: 1\nWall time: 0.1 seconds\nOutput:\n', 'Exit code: …'],
    [
      'Chunk ID: a1\nWall time: 0.05 seconds\nProcess exited with code 127\nOriginal token count: 9\nOutput:\nno doors',
      'no doors',
    ],
    [
      '{"output":"bash: doors: not \\"found\\"\\n","metadata":{"exit_code":127,"duration_',
      'bash: doors: not …',
    ],
    ['Script failed\nWall time 0.1 seconds\nOutput:\n\nScript error:\nno doors', 'no doors'],
    ['Wall time: 1.2 seconds\nOutput:\nError: no ticket', 'no ticket'],
    ['Command: doors\nDirectory: (root)\nOutput: no doors\nError: (none)\nExit Code: 1', 'no doors'],
    ['Exit code 127\nno doors', 'no doors'],
    ['Output: (empty)\nError: no doors\nExit Code: 1\nProcess Group PGID: 7', 'no doors'],
    ['<returncode>1</returncode>\n<output>\nno doors\n</output>', 'no doors'],
    ['[An error occurred during execution.]\nno doors', 'no doors'],
    ['<tool_use_error>no doors</tool_use_error>', 'no doors'],
    ['Command failed with exit code 1.\nOutput:\nno doors', 'no doors'],
    ['Command failed with exit code 1.', 'Command failed with exit code ….'],
    ['no doors\n\nCommand exited with code 2', 'no doors'],
    ['(no output)\n\nCommand exited with code 1', 'Command exited with code …'],
    ['Exit code 1\n# example.com/doors\n./doors.go:7:2: undefined: knob', '…: undefined: knob'],
    // Reports of tests, and traces, whose first line only names what failed.
    [
      'FAIL src/doors.test.ts > opens\nAssertionError: expected 1 to be 2\n ❯ src/doors.test.ts:7:3',
      'AssertionError: expected … to be …',
    ],
    [
      'Exit code 1\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\nValueError: no doors',
      'ValueError: no doors',
    ],
    [
      '===== test session starts =====\ncollected 1 item\n\n___ test_doors ___\n>   assert a == b\nE   AssertionError: no doors',
      'AssertionError: no doors',
    ],
    ['--- FAIL: TestDoors (0.00s)\n    doors_test.go:7: no doors', '--- FAIL: TestDoors (…)'],
    ['FAIL: no doors', 'FAIL: no doors'],
  ])('of %j is %j', (error, template) => {
    expect(errorTemplate(error)).toBe(template)
  })

  it('is the same of an excerpt of a long report, which has whole lines and its cause', () => {
    const steps = Array.from(
      { length: 20 },
      (_, at) => `  File "/srv/doors/step_${at}.py", line ${at}, in run`,
    )
    const trace = ['Traceback (most recent call last):', ...steps, 'ValueError: no doors in house 7'].join(
      '\n',
    )
    const excerpt = errorExcerpt(trace, 300)
    expect(errorTemplate(excerpt)).toBe(errorTemplate(trace))
    expect(excerpt.length).toBeLessThanOrEqual(300)
    const [head, why] = excerpt.split('\n…\n')
    expect(why).toBe('ValueError: no doors in house 7')
    expect(trace.startsWith(`${head}\n`)).toBe(true)
    const told = `no doors\n${'x'.repeat(400)}\nValueError: of a file that was printed`
    expect(errorExcerpt(told, 300)).toBe(`${told.slice(0, 300)}…`)
    fc.assert(
      fc.property(
        fc.string({ maxLength: 900 }),
        fc.string({ minLength: 200, maxLength: 600 }),
        (text, why) => {
          const long = `Traceback (most recent call last):\n${text}\nValueError: ${why}`
          expect(errorExcerpt(long, 300).length).toBeLessThanOrEqual(301)
        },
      ),
    )
  })

  it('has no word with a digit in it, whatever the error', () => {
    fc.assert(fc.property(fc.string(), (text) => !/\d/.test(errorTemplate(text))))
  })
})

describe('errors found in a log', () => {
  const log = logOf([
    called('a', 'pay', { card: 'c1', amount: 3 }),
    answered('a', 'Error: paid 3 of 12'),
    called('b', 'pay', { card: 'c1', amount: 12 }),
    answered('b', '{"ok":true}'),
    called('c', 'pay', { card: 'c2', amount: 1 }),
    answered('c', 'Error: paid 1 of 9'),
  ])

  it('name what the next successful call of the tool did otherwise, and cite both', () => {
    const { errors, tools } = findErrors(log)
    expect(tools).toEqual({ pay: 3 })
    expect(errors).toMatchObject([
      {
        tool: 'pay',
        is_repaired: true,
        text: '`pay` answered “paid … of …”. The next call succeeded with another `amount`.',
        cites: [
          { seq: 2, quote: 'Error: paid 3 of 12' },
          { seq: 3, quote: '"amount":12}' },
        ],
      },
    ])
  })

  it('are those after what was read before, with calls that were made before', () => {
    expect(findErrors(log, 6)).toEqual({ errors: [], tools: {}, outcome: undefined })
    expect(findErrors(log, 5).errors).toMatchObject([{ is_repaired: false, cites: [{ seq: 6 }] }])
  })

  it('say what the newest outcome is', () => {
    const event = (seq: number, reward: number): LogEntry => ({
      kind: 'event',
      seq,
      created_at: '2026-01-01T00:00:00.000000Z',
      type: 'outcome',
      data: { reward },
    })
    expect(findErrors([event(1, 0), event(2, 1)]).outcome).toEqual({ reward: 1 })
  })
})

describe.skipIf(!existsSync(RUNS))('150 recorded runs (skipped unless ANNALS_RUNS names a file)', () => {
  it('have six errors that recur in two tasks or more, each found in all of its sessions', () => {
    const runs = readFileSync(RUNS, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Run)
    const found = new Map<string, { sessions: number; tasks: Set<number> }>()
    for (const { configs, messages } of runs) {
      for (const { key, cites } of findErrors(logOf(messages)).errors) {
        const { sessions, tasks } = found.get(key) ?? { sessions: 0, tasks: new Set() }
        found.set(key, { sessions: sessions + 1, tasks: tasks.add(configs.task_id) })
        for (const { seq, quote } of cites) {
          const text = JSON.stringify(messages[seq - 1])
          const escaped = JSON.stringify(quote).slice(1, -1)
          expect([escaped, JSON.stringify(escaped).slice(1, -1)].some((form) => text.includes(form))).toBe(
            true,
          )
        }
      }
    }
    const recurring = [...found].filter(([, { tasks }]) => tasks.size >= 2)
    expect(Object.fromEntries(recurring.map(([key, { sessions }]) => [key, sessions]))).toEqual({
      'book_reservation\npayment amount does not add up, total price is …, but paid …': 10,
      'update_reservation_flights\nnot enough seats on flight …': 5,
      'update_reservation_flights\npayment method not found': 4,
      'update_reservation_flights\ngift card balance is not enough': 4,
      'update_reservation_flights\nflight … not available on date …': 3,
      'update_reservation_flights\ncertificate cannot be used to update reservation': 3,
    })
  })
})
