import { describe, expect, it } from 'vitest'
import { stableId } from '../src/ids.ts'
import { SeenIds } from '../src/seen_ids.ts'

describe('Ids that were seen', () => {
  it('are new once, and tell ids apart that differ only after their first eight digits', () => {
    const seen = new SeenIds()
    expect(seen.add('7c0c1d7e-0000-5000-8000-000000000001')).toBe(true)
    expect(seen.add('7c0c1d7e-0001-5000-8000-000000000001')).toBe(true)
    expect(seen.add('7c0c1d7e-0000-5100-8000-000000000001')).toBe(true)
    expect(seen.add('7c0c1d7e-0000-5000-8000-000000000001')).toBe(false)
  })

  it('are all new once, of twenty thousand', () => {
    const seen = new SeenIds()
    const ids = Array.from({ length: 20_000 }, (_, number) => stableId('test', number))
    expect(ids.filter((id) => !seen.add(id))).toEqual([])
    expect(ids.slice(0, 1_000).some((id) => seen.add(id))).toBe(false)
  })
})
