import { annalsProgram } from './program.js'
import { runCommand } from './run_command.js'

await runCommand(() => annalsProgram().parseAsync())
