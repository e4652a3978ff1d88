import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { visible, visibleJson, visibleLine } from '../src/terminal/visible.ts'

const ESC = '\u001b'

describe('what a terminal shows', () => {
  it.each([
    ['a colour', `${ESC}[31mred`, '\\u001b[31mred'],
    ['a title', `${ESC}]0;pwned\u0007`, '\\u001b]0;pwned\\u0007'],
    ['the one-byte form of an escape', '\u009b2J', '\\u009b2J'],
    ['a carriage return that would write over the line', 'safe\rrm -rf', 'safe\\u000drm -rf'],
    ['a mark that turns the direction', 'a\u202eb', 'a\\u202eb'],
    ['a joiner that joins nothing', 'del\u200cete\u200d', 'del\\u200cete\\u200d'],
    ['tags, which nobody sees', 'a\u{e0041}b', 'a\\u{e0041}b'],
  ])('is %s, and does not do it', (_name, text, expected) => {
    expect(visible(text)).toBe(expected)
  })

  it('is every letter, emoji, tab and line feed as it is', () => {
    const text = 'Größe 会话 👩‍👩‍👧 مرحبا\n\tnext'
    expect(visible(text)).toBe(text)
    expect(visible('a\r\nb')).toBe('a\nb')
    expect(visibleLine('a\nb\tc')).toBe('a\\nb\\tc')
  })

  it('has no control character left, whatever was stored', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(visible(text)).not.toMatch(/[^\P{Cc}\n\t]|\p{Bidi_Control}|\p{Cs}/u)
      }),
    )
  })

  it('is JSON of the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(visibleJson(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
    const nasty = ['\u007f\u009b\u202e', '\u{e0041}']
    expect(visibleJson(JSON.stringify(nasty))).toBe('["\\u007f\\u009b\\u202e","\\udb40\\udc41"]')
    expect(JSON.parse(visibleJson(JSON.stringify(nasty)))).toEqual(nasty)
  })
})
