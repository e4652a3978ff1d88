import type { TimelineItem } from '@annals/client'
import { isShownElsewhere } from '@annals/messages/session'
import { describe, expect, it } from 'vitest'
import { asVector, logOf, SESSION_VECTORS } from '../../messages/test/session_vectors.ts'
import { LogReading, versionOf } from '../src/session/log_reading.ts'

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
})
