import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const BUILT = new URL('../../dist/threads/work_thread.js', import.meta.url)
const THREAD = new URL('../../../server/dist/service/thread.js', import.meta.url)
/** Takes much more memory to read than a thread for bodies of no bytes may have. */
const COSTLY_BODY = `{"blob":{"role":"user","content":"x","y":[{}${',{}'.repeat(1_000_000)}]}}`
const SCRIPT = `
  // The thread alone keeps no process going.
  const alive = setInterval(() => {}, 1_000)
  import(${JSON.stringify(BUILT)}).then(async ({ WorkThread }) => {
    const thread = new WorkThread({ file: new URL(${JSON.stringify(THREAD)}), heap_megabytes: 32, jobs_max: 1 })
    const body = Buffer.from(${JSON.stringify(COSTLY_BODY)})
    console.log(await thread.run('', 'takeBody', 'addMessage', body).then(({ stage }) => stage, ({ error }) => error))
    await thread.close()
    clearInterval(alive)
  })
`

it('The thread for large bodies keeps its own bound where the heap of the process was given one', async () => {
  const run = promisify(execFile)(process.execPath, ['--max-old-space-size=1000', '-'])
  run.child.stdin!.end(SCRIPT)
  expect((await run).stdout).toBe('overloaded\n')
})

const LATE_REPORT = `
  const alive = setInterval(() => {}, 1_000)
  import(${JSON.stringify(BUILT)}).then(async ({ WorkThread }) => {
    const work = new WorkThread({ file: new URL(${JSON.stringify(THREAD)}), heap_megabytes: 128, jobs_max: 1 })
    const running = work.run('', 'takeBody', 'addEvent', Buffer.from('{}')).catch(({ message }) => message)
    const { thread } = work
    thread.emit('error', new Error('it failed'))
    console.log(await running)
    thread.emit('message', { number: 1, result: {} })
    console.log('and goes on')
    await thread.terminate()
    clearInterval(alive)
  })
`

it('A process goes on if a thread that failed still reports what was given up with it', async () => {
  const run = promisify(execFile)(process.execPath, ['-'])
  run.child.stdin!.end(LATE_REPORT)
  expect((await run).stdout).toBe('the work thread failed\nand goes on\n')
})

const ENDLESS = `
  const alive = setInterval(() => {}, 1_000)
  const file = new URL('data:text/javascript,import { parentPort } from "node:worker_threads"; parentPort.on("message", ({ number, name }) => { if (name === "short") parentPort.postMessage({ number, result: name }) })')
  import(${JSON.stringify(BUILT)}).then(async ({ WorkThread }) => {
    const options = { file, heap_megabytes: 64, jobs_max: 1 }
    const costly = new WorkThread({ ...options, job_ms_max: 600 })
    const work = new WorkThread(options, undefined, costly)
    const endless = work.for(true).run('a', 'endless').catch(({ error }) => error)
    const next = work.for(true).run('b', 'short')
    console.log(await work.for(false).run('b', 'short'), await endless, await next)
    await work.close()
    clearInterval(alive)
  })
`

it('A job that a project made too costly is refused, others of its thread go on, and those of the other never wait', async () => {
  const run = promisify(execFile)(process.execPath, ['-'])
  run.child.stdin!.end(ENDLESS)
  expect((await run).stdout).toBe('short payload_too_large short\n')
})
