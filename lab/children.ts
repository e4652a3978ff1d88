import type { ChildProcess } from 'node:child_process'

const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** Ensures that a process does not outlive this one, however this one ends. */
export function endWithUs(child: ChildProcess): ChildProcess {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}
