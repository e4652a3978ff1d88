import { afterEach, describe, expect, it, vi } from 'vitest'
import { Pulse } from '../../src/database/pulse.ts'
import { type OnMessage, rowAnswer, startFakePostgres } from './fake_postgres.ts'

const SILENT_MS = 300

const closings: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close()
})

async function takePulse(onMessage?: OnMessage) {
  const server = await startFakePostgres(onMessage)
  closings.push(() => server.close())
  const pulse = new Pulse(server.target, SILENT_MS)
  closings.push(() => pulse.close())
  return { server, pulse }
}

const answers: OnMessage = (socket, type) => type === 'Q' && socket.write(rowAnswer({ one: '1' }))
const endless = () => new Promise<string>(() => {})

describe('the pulse of a database', () => {
  it('ends a statement under way when nothing is answered any more', async () => {
    const { pulse } = await takePulse()
    await expect(pulse.orSilence(endless())).rejects.toThrow('fallen silent')
    expect(pulse.silent).toBe(true)
  })

  it('is found out by a process that is always late, too', async () => {
    const { pulse } = await takePulse()
    let now = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      now += 1_000
      return now
    })
    closings.push(() => clock.mockRestore())
    await expect(pulse.orSilence(endless())).rejects.toThrow('fallen silent')
  })

  it('leaves a statement alone that takes its time, and asks meanwhile', async () => {
    let asked = 0
    const { pulse } = await takePulse((socket, type, payload) => {
      if (type === 'Q') asked += 1
      answers(socket, type, payload)
    })
    let finish = (_value: string) => {}
    const statement = pulse.orSilence(
      new Promise<string>((resolve) => {
        finish = resolve
      }),
    )
    // Long enough for a silence to have been found.
    await vi.waitFor(() => expect(asked).toBeGreaterThan(5), { timeout: 10_000 })
    finish('done')
    expect(await statement).toBe('done')
    expect(pulse.silent).toBe(false)
  })

  it('comes back with the first answer', async () => {
    let talks = false
    const { pulse } = await takePulse((socket, type, payload) => {
      if (talks) answers(socket, type, payload)
    })
    await expect(pulse.orSilence(endless())).rejects.toThrow('fallen silent')
    talks = true
    await vi.waitFor(() => expect(pulse.silent).toBe(false), { timeout: 10_000 })
  })

  it('takes a refusal for an answer', async () => {
    const { pulse } = await takePulse((socket) => socket.end())
    const statement = pulse.orSilence(endless())
    const outcome = await Promise.race([
      statement,
      new Promise((resolve) => setTimeout(resolve, 4 * SILENT_MS, 'waits')),
    ])
    expect(outcome).toBe('waits')
  })

  it('holds no connection while every statement is quick', async () => {
    const { pulse, server } = await takePulse(answers)
    for (let count = 0; count < 20; count++) await pulse.orSilence(Promise.resolve('quick'))
    expect(server.accepted).toBe(0)
  })
})
