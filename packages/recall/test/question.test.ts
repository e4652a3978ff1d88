import { describe, expect, it } from 'vitest'
import { readQuestion } from '../src/question.js'

describe('a question', () => {
  it.each([
    ['how does --dry-run work', ['dry', 'run', 'work'], []],
    ['MCP error -32601', ['mcp', 'error', '32601'], []],
    ['curl -X POST', ['curl', 'post'], []],
    ['rm -rf build', ['rm', 'rf', 'build'], []],
    ['refund -paid', ['refund'], ['paid']],
    ['refund -"paid late"', ['refund'], ['paid late']],
    ['退款 -付款', ['退款'], ['付款']],
  ])('%j leaves out what it excludes, and no flags', (query, words, excluded) => {
    const question = readQuestion(query)
    expect(question.words.map(({ word }) => word)).toEqual(words)
    expect(question.excluded.map(({ words }) => words.join(' '))).toEqual(excluded)
  })

  it('looks for the parts of a name as well, unless it is in quotes', () => {
    const wordsOf = (query: string) => readQuestion(query).words.map(({ word }) => word)
    expect(wordsOf('where is getUserDetails')).toEqual(['getuserdetails', 'user', 'details'])
    expect(wordsOf('"getUserDetails"')).toEqual(['getuserdetails'])
  })
})
