import type { TimelineItem } from '@annals/client'
import { isShownElsewhere } from '@annals/messages/session'
import { describe, expect, it } from 'vitest'
import { asVector, logOf, SESSION_VECTORS } from '../../messages/test/session_vectors.ts'
import { LogReading, momentBefore, shownAt, versionOf } from '../src/session/log_reading.ts'

const logs = SESSION_VECTORS.map((vector) => ({ ...vector, log: logOf(vector) as unknown as TimelineItem[] }))

describe('what the console reads in a session', () => {
  it.each(logs)('$name', ({ log, calls, shown_elsewhere }) => {
    const reading = new LogReading().follow(log)
    expect(reading.calls.map(asVector)).toEqual(calls)
    const told = [...reading.entries.values()].filter(isShownElsewhere)
    expect(told.map(({ seq }) => seq)).toEqual(shown_elsewhere)
  })

  it.each(logs)('is the same when its entries arrive one by one: $name', ({ log, calls }) => {
    const reading = new LogReading()
    for (let end = 0; end < log.length; end++) reading.follow(log.slice(0, end))
    expect(reading.follow(log).calls.map(asVector)).toEqual(calls)
  })

  it.each(logs)('is the same when its beginning arrives last: $name', ({ log, calls }) => {
    const reading = new LogReading()
    reading.follow(log.slice(1))
    expect(reading.follow(log).calls.map(asVector)).toEqual(calls)
  })

  it('keeps what it read of entries to which others are appended, and tells which of them show something new', () => {
    const [{ log }] = logs as [(typeof logs)[number]]
    const reading = new LogReading()
    const before = [...reading.follow(log.slice(0, 3)).entries.values()]
    const versions = before.map(versionOf)
    const after = reading.follow(log.slice(0, 4))
    expect(before.every((entry) => after.entries.get(entry.seq) === entry)).toBe(true)
    // The result of the call of the second entry, which the third one repeats.
    expect(before.map(versionOf)).toEqual(versions.map((version, index) => version + (index > 0 ? 1 : 0)))
  })

  it('is read anew for another session', () => {
    const [one, other] = [logs[0]!, logs[1]!]
    const moved = other.log.map((item) => ({ ...item, id: `other-${item.id}` })) as TimelineItem[]
    const reading = new LogReading()
    reading.follow(one.log)
    expect(reading.follow(moved).calls.map(asVector)).toEqual(other.calls)
  })

  it('counts a pause once: one that a call took is not also a pause before the next entry', () => {
    const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000Z`
    const given = { id: 'c', name: 'find', arguments: {} }
    const events: Array<[string, object, number]> = [
      ['asked', {}, 0],
      ['tool_call', given, 1],
      ['tool_call', given, 4],
      ['tool_result', { id: 'c', result: 'found' }, 9],
      ['told', {}, 10],
    ]
    const items = events.map(([type, data, second], index) => {
      const [seq, id] = [index + 1, `${index}`]
      return { kind: 'event', seq, id, type, data, created_at: at(second) } as unknown as TimelineItem
    })
    const reading = new LogReading().follow(items)
    expect(momentBefore(reading, 2)).toBe(at(0))
    expect(momentBefore(reading, 5)).toBe(at(9))
    // The call that was logged again ends nothing.
    expect(momentBefore(reading, 4)).toBe(at(1))
    expect([1, 2, 3, 4, 5].map((seq) => shownAt(reading, seq))).toEqual([1, 2, 2, 2, 5])
  })
})
