import { tmpdir } from 'node:os'
import { Readable, Writable } from 'node:stream'
import { annalsProgram } from '../packages/cli/dist/program.js'
import { runCommand } from '../packages/cli/dist/run_command.js'

// A process that runs each command that comes as a message, and answers how it ended and what it printed.

process.chdir(tmpdir())
process.on('message', run)
process.send('ready')

async function run({ bin, args, env, input }) {
  process.argv = [process.execPath, bin, ...args]
  // One by one, for only so does Node hear of a new time zone.
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  for (const [name, value] of Object.entries(env)) process.env[name] = value
  const streams = {
    stdin: Readable.from(input === undefined ? [] : [Buffer.from(input)]),
    stdout: collector(),
    stderr: collector(),
  }
  for (const [name, value] of Object.entries(streams))
    Object.defineProperty(process, name, { value, configurable: true })
  await runCommand(() => annalsProgram().parseAsync(args, { from: 'user' }))
  const code = process.exitCode ?? 0
  process.exitCode = undefined
  process.send({ code, stdout: streams.stdout.text(), stderr: streams.stderr.text() })
}

function collector() {
  const chunks = []
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      chunks.push(chunk)
      done()
    },
  })
  return Object.assign(stream, { text: () => Buffer.concat(chunks).toString() })
}
