import { afterEach, describe, expect, it, vi } from 'vitest'
import { AvailabilityProbe } from '../../src/postgres/availability_probe.ts'
import { type OnMessage, rowAnswer, startFakePostgres } from './fake_postgres.ts'

const SILENT_MS = 300

const closings: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close()
})

async function takePulse(onMessage?: OnMessage) {
  const server = await startFakePostgres(onMessage)
  closings.push(() => server.close())
  const onSilence = vi.fn()
  const probe = new AvailabilityProbe(server.target, SILENT_MS, undefined, onSilence)
  closings.push(() => probe.close())
  return { server, probe, onSilence }
}

const answers: OnMessage = (socket, type) => type === 'Q' && socket.write(rowAnswer({ one: '1' }))
const endless = () => new Promise<string>(() => {})

describe('the probe of a database', () => {
  it('ends a statement under way when nothing is answered any more', async () => {
    const { probe, onSilence } = await takePulse()
    await expect(probe.orSilence(endless())).rejects.toThrow('does not answer')
    expect(probe.silent).toBe(true)
    expect(onSilence).toHaveBeenCalledOnce()
  })

  it('is found out by a process that is always late, too', async () => {
    const { probe } = await takePulse()
    let now = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      now += 1_000
      return now
    })
    closings.push(() => clock.mockRestore())
    await expect(probe.orSilence(endless())).rejects.toThrow('does not answer')
  })

  it('leaves a statement alone that takes its time, and asks meanwhile', async () => {
    let asked = 0
    const { probe } = await takePulse((socket, type, payload) => {
      if (type === 'Q') asked += 1
      answers(socket, type, payload)
    })
    let finish = (_value: string) => {}
    const statement = probe.orSilence(
      new Promise<string>((resolve) => {
        finish = resolve
      }),
    )
    // Long enough for a silence to have been found.
    await vi.waitFor(() => expect(asked).toBeGreaterThan(5), { timeout: 10_000 })
    finish('done')
    expect(await statement).toBe('done')
    expect(probe.silent).toBe(false)
  })

  it('comes back with the first answer', async () => {
    let talks = false
    const { probe } = await takePulse((socket, type, payload) => {
      if (talks) answers(socket, type, payload)
    })
    await expect(probe.orSilence(endless())).rejects.toThrow('does not answer')
    talks = true
    await vi.waitFor(() => expect(probe.silent).toBe(false), { timeout: 10_000 })
  })

  it('takes a refusal for an answer', async () => {
    const { probe } = await takePulse((socket) => socket.end())
    const statement = probe.orSilence(endless())
    const outcome = await Promise.race([
      statement,
      new Promise((resolve) => setTimeout(resolve, 4 * SILENT_MS, 'waits')),
    ])
    expect(outcome).toBe('waits')
  })

  it('holds no connection while every statement is quick', async () => {
    const { probe, server } = await takePulse(answers)
    for (let count = 0; count < 20; count++) await probe.orSilence(Promise.resolve('quick'))
    expect(server.accepted).toBe(0)
  })
})
