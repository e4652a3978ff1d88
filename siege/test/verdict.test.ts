import { describe, expect, it } from 'vitest'
import { BOUNDS, judge, mayBeChance, type Seen } from '../verdict.ts'
import type { Deed } from '../victim/victim.ts'

const good: Deed = { what: 'list', began_at: 0, took_ms: 5, starved_ms: 0, outcome: 200, isGood: true }
const refused: Deed = { what: 'ready', began_at: 0, took_ms: 5, starved_ms: 0, outcome: 503, isGood: false }
const deeds = (failed: number, all = 200) =>
  Array.from({ length: all }, (_, at): Deed => (at < failed ? refused : good))

const harmless: Seen = {
  attack: 'some attack',
  deeds: deeds(0),
  stood: [{ stood_ms: 30, cpu_ms: 25, waited_ms: 5 }],
  rss_max_mb: 200,
  kept_mb_more: 3,
  files_more: 2,
  answers: { 400: 10, 503: 2, closed: 1 },
  allowed: [400, 503, 'closed'],
  recovered_ms: 100,
  errors: {},
  hasFallen: false,
  problems: [],
}

describe('an attack that harms nobody', () => {
  it('breaks no bound', () => {
    expect(judge(harmless).broken).toEqual([])
  })

  it('may cost the other tenant one request in a hundred', () => {
    expect(judge({ ...harmless, deeds: deeds(2) }).broken).toEqual([])
  })

  it('may leave the loop standing for want of a processor', () => {
    const stood = [{ stood_ms: 900, cpu_ms: 20, waited_ms: 880 }]
    expect(judge({ ...harmless, stood })).toMatchObject({ broken: [], loop_ms: 20, loop_stood_ms: 900 })
  })
})

describe('an attack that does harm', () => {
  it.each<[string, Partial<Seen>, RegExp]>([
    [
      'the other tenant loses three requests of two hundred',
      { deeds: deeds(3) },
      /98\.5 % success.*3 × ready 503/,
    ],
    ['the other tenant was not served at all', { deeds: [] }, /0\.0 % success/],
    [
      'the loop worked for 100 ms at a time',
      { stood: [{ stood_ms: 110, cpu_ms: 100, waited_ms: 0 }] },
      /stood for 100 ms/,
    ],
    ['memory passes the budget', { rss_max_mb: BOUNDS.rss_mb_max + 1 }, /551 MB/],
    ['the process ends', { hasFallen: true }, /process ended/],
    ['an attacker is answered 500', { answers: { 500: 3 } }, /answered 500 3 times/],
    ['an attacker is let in', { answers: { 200: 1 } }, /answered 200 1 times/],
    ['the service is not itself again', { recovered_ms: undefined }, /not itself again/],
    ['memory is kept', { kept_mb_more: BOUNDS.kept_mb_more_max + 1 }, /kept 49 MB/],
    ['connections are kept', { files_more: BOUNDS.files_more_max + 1 }, /kept 33 files/],
    ['an error is logged', { errors: { 'request failed': 2 } }, /logged 2 times as an error: request failed/],
    ['something else went wrong', { problems: ['an orphan was left'] }, /an orphan was left/],
  ])('is told in a sentence: %s', (_case, harm, sentence) => {
    expect(judge({ ...harmless, ...harm }).broken).toEqual([expect.stringMatching(sentence)])
  })

  it.each([
    ['a loop that stood for less than twice the bound', 150, {}, true],
    ['a longer one', 200, {}, false],
    ['one beside something else', 150, { hasFallen: true }, false],
    ['no loop that stood', 50, { hasFallen: true }, false],
  ])('may be chance, and is tried once more, if it is %s', (_case, cpu_ms, harm, expected) => {
    const stood = [{ stood_ms: cpu_ms, cpu_ms, waited_ms: 0 }]
    expect(mayBeChance(judge({ ...harmless, stood, ...harm }))).toBe(expected)
  })

  it('counts a request that was answered too late as failed', () => {
    const late: Deed = { ...good, took_ms: 6_000, isGood: false }
    const { success, failures } = judge({ ...harmless, deeds: [late, good, good, good] })
    expect(success).toBe(0.75)
    expect(failures).toEqual({ 'list late': 1 })
  })
})
