import { expect, test } from 'vitest'
import {
  faultOf,
  type RewriteOptions,
  type Rule,
  readyRules,
  rewriteFragment,
  rewriteJson,
} from '../src/index.js'

const CARD = '4111111111111111'
const PERSONAL: Rule = { what: { detector: 'personal' }, do: 'mask', when: 'write' }

const SECRETS: Rule[] = [{ what: { detector: 'secrets' }, do: 'mask', when: 'write' }]

function rewritten(value: unknown, rules: Rule[] = [PERSONAL], options: Partial<RewriteOptions> = {}) {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const outcome = rewriteJson(text, { rules: readyRules(rules), ...options })
  if (outcome && 'refused' in outcome) return outcome
  if (!outcome) return undefined
  const numbers = new Map<string, number>()
  const named = outcome.text(({ kind: { name, action }, value }) => {
    if (action === 'drop') return ''
    const key = `${name} ${value}`
    if (!numbers.has(key)) numbers.set(key, numbers.size + 1)
    return action === 'hash' ? `<${name}:…>` : `<${name}_${numbers.get(key)}>`
  })
  return JSON.parse(named)
}

test('values, names of members, numbers, JSON in strings and text in base64 are rewritten, and nothing else', () => {
  const nested = JSON.stringify({ to: 'omar@example.com', deeper: JSON.stringify(['ada@example.com\n"x"']) })
  const text = `{ "a" : "To omar@example.com,\\n\\u006fmar\\u0040example.com \\ud83d\\ude00" , "ada@example.com":1.50e3,
    "card": ${CARD}, "big": 12345678901234567890.5, "args": ${JSON.stringify(nested)}, "none": null,
    "file": "data:text/plain;base64,${btoa('call me: +49 30 1234567 — Ömar'.replace(/[^\0-\xff]/g, '-'))}" }`
  const masked = rewriteJson(text, { rules: readyRules([PERSONAL]) })!
  const out = 'refused' in masked ? '' : masked.text(({ kind }) => `<${kind.name}>`)
  expect(out).toContain('{ "a" : "To <EMAIL>,\\n<EMAIL> 😀" , "<EMAIL>":1.50e3,')
  expect(out).toContain('"card": "<CARD>", "big": 12345678901234567890.5')
  expect(JSON.parse(out).args).toBe(
    JSON.stringify({ to: '<EMAIL>', deeper: JSON.stringify(['<EMAIL>\n"x"']) }),
  )
  expect(rewritten({ file: btoa('write to omar@example.com today') })).toEqual({ file: '<EMAIL_1>' })
  expect(rewritten({ a: 'nothing', b: [1, 2, { c: `${CARD}1` }] })).toBeUndefined()
})

test('numbers of cards are found however they are written, and what is left is JSON', () => {
  for (const number of [CARD, `-${CARD}`, `${CARD}.0`, '4.111111111111111e15'])
    for (const isAnswer of [true, false]) {
      const [text, rules] = [`{"a":[${number},-1.5]}`, readyRules([PERSONAL])]
      const outcome = isAnswer ? rewriteFragment(text, rules) : rewriteJson(text, { rules })
      const pieces = outcome && 'marks' in outcome ? outcome : undefined
      expect(
        pieces?.text(({ kind }) => `<${kind.name}>`),
        number,
      ).toBe('{"a":["<CARD>",-1.5]}')
    }
})

test('characters that look like others, or are not seen, hide nothing', () => {
  const wide = (text: string) =>
    text.replace(/[!-~]/g, (one) => String.fromCharCode(one.charCodeAt(0) + 0xfee0))
  const arabic = (text: string) => text.replace(/\d/g, (one) => String.fromCharCode(0x660 + Number(one)))
  const iban = 'DE89370400440532013000'
  for (const [name, ...texts] of [
    ['CARD', wide(CARD), arabic(CARD), `4111\u200b${CARD.slice(4)}`, '4111\u20111111\u20111111\u20111111'],
    [
      'PHONE',
      wide('+49305550199'),
      '+49\u201130\u20115550199',
      '+49\u200930\u20095550199',
      '+4930\u2060 5550199',
      '&#043;49305550199',
    ],
    [
      'IBAN',
      wide(iban),
      `DE89\ufeff${iban.slice(4)}`,
      ...['-', '.'].map((mark) => iban.replace(/(.{4})(?=.)/g, `$1${mark}`)),
    ],
    [
      'EMAIL',
      ...['omar%2540example.com', 'omar\\x40example.com', 'omar\\u{40}example.com', 'omar&#064;example.com'],
      ...['omar\\u0040example.com', 'omar&#64;example.com', 'omar&commat;example.com'],
      ...['omar\u200b@example.com', 'om\u00adar@exam\u00adple.com', wide('omar.q@example.com')],
      ...['rene\u0301.q@example.com', 'иван.петров@example.com', '用户@example.com', 'omar@пример.рф'],
    ],
  ] as Array<[string, ...string[]]>)
    for (const text of texts) expect(rewritten([`( ${text} )`])).toEqual([`( <${name}_1> )`])
  expect(rewritten(['请联系omar@example.com谢谢，１２３'])).toEqual(['请联系<EMAIL_1>谢谢，１２３'])
  const lines = btoa('Please write to omar@example.com, not later than tomorrow. '.repeat(3))
  expect(rewritten([lines.replace(/.{76}/g, '$&\r\n')])).toEqual(['<EMAIL_1>'])
})

test('secrets are known by all names and addresses that their vendors use', () => {
  const secret = 'kJ4mQ8sT2vX6zB1nC5dF7gH9jK3lP0wEkJ4mQ8sT'
  for (const before of [
    '"SecretAccessKey": "',
    "aws_secret_access_key => '",
    'secret_access_key=',
    'AWSSecretAccessKey=',
  ])
    expect(rewritten([before + secret], SECRETS), before).toEqual([`${before}<AWS_KEY_1>`])
  expect(rewritten([`(ya29.${secret}_a)`], SECRETS)).toEqual(['(<GOOGLE_KEY_1>)'])
  const hook = `hooks.slack.com/workflows/T01ABCDEFGH/A01ABCDEFGH/123456789012345678/${secret.slice(0, 24)}`
  expect(rewritten([`https://${hook}`], SECRETS)).toEqual(['https://<SLACK_TOKEN_1>'])
})

test('the same value has the same mask; hash and drop do as they say, and refuse names the place', () => {
  expect(rewritten(['a@example.com b@example.com', 'a@example.com'])).toEqual([
    '<EMAIL_1> <EMAIL_2>',
    '<EMAIL_1>',
  ])
  expect(rewritten(['x a@example.com y'], [{ ...PERSONAL, do: 'hash' }])).toEqual(['x <EMAIL:…> y'])
  expect(rewritten(['x a@example.com y'], [{ ...PERSONAL, do: 'drop' }])).toEqual(['x  y'])
  const refusing = rewritten({ 'a/b': [1, { c: 'a@example.com' }] }, [{ ...PERSONAL, do: 'refuse' }])
  expect(refusing).toEqual({ refused: { pointer: '/a~1b/1/c', name: 'EMAIL' } })
})

test('rules are for the kinds, types, roles and pointers that they name, the first that fits decides', () => {
  const pattern = { pattern: 'K-[0-9]+', as: 'ORDER' }
  const request = {
    entries: [
      { kind: 'event', type: 'K-1', key: 'K-2', data: { a: 'K-3', b: ['K-4', 'a@example.com'] } },
      { kind: 'event', type: 'other', data: { a: 'K-5' } },
      { kind: 'message', blob: { role: 'user', content: 'K-6' }, meta: { m: 'K-7' } },
      { kind: 'message', blob: { role: 'assistant', content: 'K-8' } },
    ],
  }
  const rewrite = (where: Rule['where']) =>
    JSON.stringify(
      rewritten(request, [{ ...(where && { where }), what: pattern, do: 'hash', when: 'write' }], {
        request,
      }),
    )
  const hidden = (text: string) => [1, 2, 3, 4, 5, 6, 7, 8].filter((number) => !text.includes(`K-${number}`))
  expect(hidden(rewrite(undefined))).toEqual([3, 4, 5, 6, 7, 8])
  expect(hidden(rewrite({ kinds: ['event'] }))).toEqual([3, 4, 5])
  expect(hidden(rewrite({ types: ['other'] }))).toEqual([5])
  expect(hidden(rewrite({ roles: ['user'] }))).toEqual([6, 7])
  expect(hidden(rewrite({ pointers: ['/b'] }))).toEqual([4])
  const both: Rule[] = [{ what: { pattern: '[a-z]@example' }, do: 'drop', when: 'write' }, PERSONAL]
  expect(rewritten(['x a@example.com y'], both)).toEqual(['x  y'])
})

test('messages get the counts of what was found in them, beside their own meta', () => {
  const rewrite = (value: object) => rewritten(value, [PERSONAL], { request: value, counts: true })
  const blob = { role: 'user', content: 'a@example.com b@example.com', tool: JSON.stringify({ c: CARD }) }
  const redacted = { email: 2, card: 1 }
  expect(rewrite({ blob }).meta).toEqual({ redacted })
  expect(rewrite({ meta: {}, blob }).meta).toEqual({ redacted })
  expect(rewrite({ blob, meta: { mine: 1, redacted: 'forged' } }).meta).toEqual({ mine: 1, redacted })
  const batch = rewrite({
    entries: [
      { kind: 'message', blob },
      { kind: 'event', type: 'e', data: { a: 'a@example.com' } },
    ],
  })
  expect(batch.entries[0].meta).toEqual({ redacted })
  expect(batch.entries[1]).toEqual({ kind: 'event', type: 'e', data: { a: '<EMAIL_1>' } })
})

test('rules that cannot be used are refused with their place', () => {
  const fault = (rule: object) => faultOf([PERSONAL, { ...PERSONAL, ...rule } as Rule])?.pointer
  expect(fault({})).toBeUndefined()
  expect(fault({ what: { pattern: '(a' } })).toBe('/rules/1/what/pattern')
  expect(fault({ what: { pattern: 'a*' } })).toBe('/rules/1/what/pattern')
  expect(fault({ what: { pattern: 'a[ab]{400}[cd]' } })).toBe('/rules/1/what/pattern')
  expect(fault({ what: { pattern: '(?=a)b' } })).toBe('/rules/1/what/pattern')
  expect(fault({ what: { pattern: '((a{30}){30}){30}' } })).toBe('/rules/1/what/pattern')
  expect(fault({ what: { detector: 'shoes' } })).toBe('/rules/1/what/detector')
  expect(fault({ do: 'refuse', when: 'read' })).toBe('/rules/1/do')
  expect(fault({ when: 'read', where: { kinds: ['event'] } })).toBe('/rules/1/where')
  expect(fault({ where: { pointers: ['/a', 'b'] } })).toBe('/rules/1/where/pointers/1')
  expect(fault({ where: { kinds: ['message'], types: ['a'] } })).toBe('/rules/1/where/types')
})

test('a text that nests deeper than JSON may is still looked through', () => {
  const deep = JSON.stringify({ a: `${'['.repeat(5_000)}"a@example.com"${']'.repeat(5_000)}` })
  expect(JSON.stringify(rewritten(deep))).not.toContain('@')
})
