import fc from 'fast-check'

/** A JSON value as it is written: a literal, or its children. Members are a list, so that any key is possible. */
export type JsonTree =
  | { literal: string }
  | { items: JsonTree[] }
  | { members: Array<[key: string, value: JsonTree]> }

/** Where a value stands in a tree: a key for each object, an index for each array. */
export type Path = Array<string | number>

const SPECIAL = [
  '"',
  '\\',
  '/',
  '~',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '\n',
  '\u001f',
  '\u007f',
  '\u2028',
  '\uffff',
  '😀',
]

/** A character that jsonb can hold, from all of Unicode, often one that means something to JSON. */
const character = fc.oneof(
  fc.constantFrom(...SPECIAL),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter(isStorable),
)

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** A character written as JSON: as it is where that is allowed, or with an escape of either kind. */
const writtenCharacter = fc
  .tuple(character, fc.constantFrom('plain', 'short', 'upper'))
  .map(([value, style]) => {
    const short = JSON.stringify(value).slice(1, -1)
    if (style !== 'upper') return style === 'plain' && value !== '/' ? short : value === '/' ? '\\/' : short
    return [...Array(value.length).keys()].map((at) => escapeUnit(value.charCodeAt(at))).join('')
  })

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0').toUpperCase()}`
}

/** A string literal that jsonb takes, in any of its spellings. */
export const goodString = fc
  .array(writtenCharacter, { maxLength: 10 })
  .map((characters) => `"${characters.join('')}"`)

/** A number that jsonb takes, in any of its spellings; some are far beyond what a float holds. */
export const goodNumber = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.bigInt({ min: 0n, max: 10n ** 40n }).map(String),
    fc.option(fc.stringMatching(/^[0-9]{1,40}$/)),
    fc.option(fc.tuple(fc.constantFrom('e', 'E', 'e+', 'e-', 'E-0'), fc.nat({ max: 300 }))),
  )
  .map(([sign, integer, fraction, exponent]) =>
    [sign, integer, fraction === null ? '' : `.${fraction}`, (exponent ?? []).join('')].join(''),
  )

/** A string literal with something in it that no text of PostgreSQL can hold. */
export const badString = fc
  .tuple(
    fc.array(writtenCharacter, { maxLength: 3 }),
    fc.constantFrom('\\u0000', '\\ud800', '\\uDFFF', '\\ude00\\ud83d', '\\ud83d\\ud83d\\ude00'),
    fc.array(writtenCharacter, { maxLength: 3 }).filter((after) => !/^\\u[dD][c-fC-F]/.test(after[0] ?? '')),
  )
  .map(([before, bad, after]) => `"${before.join('')}${bad}${after.join('')}"`)

/** A number that no numeric of PostgreSQL can hold. */
export const badNumber = fc.oneof(
  fc.integer({ min: 131_072, max: 99_999_999 }).map((power) => `-1e${power}`),
  fc.integer({ min: 16_384, max: 99_999_999 }).map((power) => `1E-${power}`),
  fc.constantFrom(
    '1.0e-16383',
    '0e-16384',
    '12e131071',
    '1e99999999999999999999',
    '-1e-99999999999999999999',
  ),
  fc.constantFrom(`${'9'.repeat(131_073)}`, `0.${'0'.repeat(16_384)}`, `1.${'5'.repeat(16_384)}e0`),
)

const key = fc.oneof(
  fc.constantFrom('__proto__', 'constructor', '', 'a/b', 'm~n', '~1', '0', '"'),
  fc.array(character, { maxLength: 5 }).map((characters) => characters.join('')),
)

/** A tree of arrays and objects whose leaves are the given literals. No object has the same key twice. */
export function jsonTree(leaf: fc.Arbitrary<string>): fc.Arbitrary<JsonTree> {
  return fc.letrec<{ tree: JsonTree }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf.map((literal) => ({ literal })),
      fc.array(tie('tree'), { maxLength: 4 }).map((items) => ({ items })),
      fc
        .uniqueArray(fc.tuple(key, tie('tree')), { maxLength: 4, selector: ([name]) => name })
        .map((members) => ({ members })),
    ),
  })).tree
}

/** A leaf of which jsonb takes any. */
export const goodLeaf = fc.oneof(goodString, goodNumber, fc.constantFrom('null', 'true', 'false', '[]', '{}'))

/** How much insignificant space stands around each token. */
export const space = fc.constantFrom('', ' ', '\r\n\t ')

/** Writes a tree as JSON text. */
export function write(tree: JsonTree, gap = ''): string {
  if ('literal' in tree) return `${gap}${tree.literal}${gap}`
  const children =
    'items' in tree
      ? tree.items.map((item) => write(item, gap))
      : tree.members.map(([name, value]) => `${gap}${JSON.stringify(name)}${gap}:${write(value, gap)}`)
  const [open, close] = 'items' in tree ? '[]' : '{}'
  return `${gap}${open}${gap}${children.join(',')}${close}${gap}`
}

/** The paths of all leaves. */
export function leavesOf(tree: JsonTree, path: Path = []): Path[] {
  if ('literal' in tree) return [path]
  if ('items' in tree) return tree.items.flatMap((item, index) => leavesOf(item, [...path, index]))
  return tree.members.flatMap(([name, value]) => leavesOf(value, [...path, name]))
}

/** The tree with another literal at a path. */
export function replaceAt(tree: JsonTree, path: Path, literal: string): JsonTree {
  const [step, ...rest] = path
  if (step === undefined) return { literal }
  if ('items' in tree)
    return {
      items: tree.items.map((item, index) => (index === step ? replaceAt(item, rest, literal) : item)),
    }
  if ('members' in tree)
    return {
      members: tree.members.map(([name, value]) => [
        name,
        name === step ? replaceAt(value, rest, literal) : value,
      ]),
    }
  throw new Error('the path does not fit the tree')
}

/** A path as a JSON pointer (RFC 6901). */
export function pointerTo(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
