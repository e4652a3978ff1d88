import { describe, expect, it } from 'vitest'
import { shortIds } from '../../src/terminal/short_ids.js'

const A = '01a21f16-baab-736c-a0bf-e657ad41bd29'
const B = '01a21f16-baab-7fff-a0bf-e657ad41bd29'

describe('short ids', () => {
  it('are whole where there is room', () => {
    expect(shortIds([A, B], 130)(A)).toBe(A)
  })

  it('are elsewhere as long as it takes to tell them apart, however often one is there', () => {
    expect(shortIds([A, A], 80)(A)).toBe('01a21f16-baab')
    expect([A, B].map(shortIds([A, B, A], 80))).toEqual(['01a21f16-baab-73', '01a21f16-baab-7f'])
    expect(shortIds([], 80)(A)).toBe('01a21f16-baab')
  })
})
