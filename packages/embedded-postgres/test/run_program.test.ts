import { expect, it } from 'vitest'
import { runProgram } from '../src/run_program.ts'

it('runs a program in a session of its own, so that Ctrl-C in our terminal does not end it', async () => {
  const { output } = await runProgram('/bin/sh', ['-c', 'echo $$; ps -o pgid= -p $$'])
  const [pid, group] = output.trim().split(/\s+/)
  expect(group).toBe(pid)
})
