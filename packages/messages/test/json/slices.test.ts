import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elementSlices, memberObjects, memberSlice, memberTexts } from '../../src/json/json_text.ts'
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

describe('one member of an object', () => {
  it('is found where it stands last, or not at all', () => {
    const text = '{"a":1,"b": [2] ,"a":{"b":3}}'
    expect(memberSlice(text, 'a')).toEqual({ from: 21, to: 28 })
    expect(memberSlice(text, 'c')).toBeUndefined()
    expect(memberTexts(text, 21)).toEqual(new Map([['b', '3']]))
  })
})

describe('the elements of an array', () => {
  it('are the texts as they were sent, for every array', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), space, (elements, gap) => {
        const array = `${gap}[${gap}${elements.join(',')}]`
        const texts = elementSlices(array).map(({ from, to }) => array.slice(from, to))
        expect(texts).toEqual(elements.map((element) => element.trim()))
      }),
    )
  })
})

describe('the objects in a member of an object', () => {
  it('have their places and members as they were sent, for every array', () => {
    const object = fc.dictionary(fc.string({ unit: 'binary' }), text)
    fc.assert(
      fc.property(fc.array(object, { maxLength: 4 }), text, space, (objects, other, gap) => {
        const written = objects.map(
          (one) =>
            `{${Object.entries(one).map(([key, value]) => `${JSON.stringify(key)}${gap}:${value}`)}${gap}}`,
        )
        const whole = `${gap}{"a":${other},"b"${gap}:[${gap}${written.join(`${gap},${gap}`)}${gap}],"c":${other}}`
        const found = memberObjects(whole, 'b')
        expect(found.map(({ from, to }) => whole.slice(from, to))).toEqual(written)
        expect(found.map(({ members }) => members)).toEqual(written.map((one) => memberTexts(one)))
      }),
    )
  })

  it('are those of the last of repeated arrays, whatever the others hold', () => {
    const texts = (text: string) => memberObjects(text, 'b').map(({ from, to }) => text.slice(from, to))
    expect(texts('{"b":"[{","b":[1,"{",[{}]],"b":[{"c":[{}]} ,{}],"a":[{"d":1}]}')).toEqual([
      '{"c":[{}]}',
      '{}',
    ])
    expect(texts('{"b":[{"c":1}],"\\u0062":[]}')).toEqual([])
    expect(texts('{"a":1}')).toEqual([])
  })
})
