import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashToken, isMistyped, mintToken } from '../../../src/projects/tokens/token.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const PREFIX = 'sk-annals-'

const minted = fc.constant(null).map(() => mintToken())

describe('a minted token', () => {
  it('has the form of ours, visible ASCII only, and is taken as typed right', () => {
    fc.assert(
      fc.property(minted, (token) => {
        expect(token).toMatch(/^sk-annals-[\w-]{43}-[\w-]{6}$/)
        expect(isMistyped(token)).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  it('is never the same twice, nor is its hash', () => {
    const tokens = Array.from({ length: 2_000 }, mintToken)
    expect(new Set(tokens).size).toBe(2_000)
    expect(new Set(tokens.map((token) => hashToken(token).toString('hex'))).size).toBe(2_000)
  })

  it('carries at least 192 random bits: each of its places takes every character', () => {
    const tokens = Array.from({ length: 2_000 }, mintToken)
    for (let at = PREFIX.length; at < PREFIX.length + 42; at++)
      expect(new Set(tokens.map((token) => token[at])).size).toBe(ALPHABET.length)
  })

  it('is seen to be mistyped with any one character after its prefix changed', () => {
    fc.assert(
      fc.property(minted, fc.nat(), fc.constantFrom(...ALPHABET), (token, at, character) => {
        const index = PREFIX.length + (at % (token.length - PREFIX.length))
        fc.pre(token[index] !== character && index !== token.length - 7)
        expect(isMistyped(token.slice(0, index) + character + token.slice(index + 1))).toBe(true)
      }),
      { numRuns: 1_000 },
    )
  })

  it('is seen to be mistyped with two neighbours swapped', () => {
    fc.assert(
      fc.property(minted, fc.nat(), (token, at) => {
        const index = PREFIX.length + (at % (token.length - PREFIX.length - 1))
        const swapped = token.slice(0, index) + token[index + 1] + token[index] + token.slice(index + 2)
        fc.pre(swapped !== token && swapped.at(-7) === '-')
        expect(isMistyped(swapped)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a token of another form', () => {
  it('is never called mistyped: it is the operator’s own', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[!-~]{1,256}$/), (token) => {
        fc.pre(!/^sk-annals-[\w-]{43}-[\w-]{6}$/.test(token))
        expect(isMistyped(token)).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  it('has the SHA-256 of its bytes as its hash', () => {
    expect(hashToken('abc').toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    )
  })
})
