import { annalsProgram } from './program.js'
import { runCommand } from './run_command.js'

// Without a command, help is what was asked for.
const words = process.argv.length > 2 ? process.argv.slice(2) : ['--help']
await runCommand(() => annalsProgram().parseAsync(words, { from: 'user' }))
