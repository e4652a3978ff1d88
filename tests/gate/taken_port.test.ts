import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runAnnals } from '../harness/annals_process.ts'

it('a start on a port that is taken makes no database', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'annals-port-'))
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const data_dir = join(directory, 'data')
  try {
    const { code, stderr } = await runAnnals(['serve'], {
      PORT: String(port),
      HOST: '127.0.0.1',
      ANNALS_DATA_DIR: data_dir,
    })
    expect(code).not.toBe(0)
    expect(stderr).toContain(`Port ${port} on 127.0.0.1 is taken`)
    expect(existsSync(data_dir)).toBe(false)
  } finally {
    server.close()
    await rm(directory, { recursive: true, force: true })
  }
})
