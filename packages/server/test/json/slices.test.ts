import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elementTexts, memberTexts } from '../../src/json/slices.ts'
import { goodLeaf, jsonTree, space, write } from './json_texts.ts'

const text = fc.tuple(jsonTree(goodLeaf), space).map(([tree, gap]) => write(tree, gap))

describe('the members of an object', () => {
  it('are the texts as they were sent, for every object', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ unit: 'binary' }), text), { maxLength: 5 }),
        space,
        (members, gap) => {
          const object = `${gap}{${members.map(([key, value]) => `${gap}${JSON.stringify(key)}${gap}:${value}`).join(',')}${gap}}`
          const expected = new Map(members.map(([key, value]) => [key, value.trim()]))
          expect(memberTexts(object)).toEqual(expected)
        },
      ),
    )
  })

  it('are found under keys that are written with escapes, and the last of a repeated key counts', () => {
    expect(memberTexts('{"d\\u0061ta":1,"data":{"a":[1e2]} , "x":"}\\"" }')).toEqual(
      new Map([
        ['data', '{"a":[1e2]}'],
        ['x', '"}\\""'],
      ]),
    )
  })
})

describe('the elements of an array', () => {
  it('are the texts as they were sent, for every array', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), space, (elements, gap) => {
        expect(elementTexts(`${gap}[${gap}${elements.join(',')}]`)).toEqual(
          elements.map((element) => element.trim()),
        )
      }),
    )
  })
})
