import { expect, it } from 'vitest'
import { detailOf } from '../src/session/index.js'

it.each([
  [{ command: 'npm test', timeout: 5 }, 'npm test'],
  [{ n: 1, file_path: 'src/door.ts' }, 'src/door.ts'],
  [{ command: ['bash', '-lc', 'ls && echo "hi"'] }, 'ls && echo "hi"'],
  [{ command: ['/bin/zsh', '-c', 'npm test'] }, 'npm test'],
  [{ command: ['powershell.exe', '-Command', 'Get-ChildItem'] }, 'Get-ChildItem'],
  [{ command: ['ssh', '-v', 'door'] }, 'ssh -v door'],
  [{ command: ['bash'] }, 'bash'],
  [{ input: '*** Begin Patch\n*** Update File: src/door.ts\n@@' }, 'src/door.ts'],
  [{ command: ['apply_patch', '*** Begin Patch\n*** Add File: door.md\n+x'] }, 'door.md'],
  [{ q: 'doors' }, 'doors'],
  [{ command: [] }, undefined],
  [{ n: 1 }, undefined],
])('of a call with %j the detail is %j', (given, detail) => {
  expect(detailOf(JSON.stringify(given))).toBe(detail)
})
