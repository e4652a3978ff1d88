import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, win32 } from 'node:path'
import { expect, it } from 'vitest'
import { reasonForNone } from '../../embedded-postgres/src/engine.ts'
import { stemOf } from '../../importers/src/format.ts'
import { nameBelow } from '../src/client/import_files.ts'
import { openerOf } from '../src/client/open_console.ts'
import { pagerOf } from '../src/terminal/pager.ts'

it('a browser is opened by what each platform has, and on none without a display', () => {
  expect(openerOf('darwin', {})).toBe('open')
  expect(openerOf('win32', {})).toBe('explorer')
  expect(openerOf('linux', { WAYLAND_DISPLAY: 'wayland-0' })).toBe('xdg-open')
  expect(openerOf('linux', { DISPLAY: '' })).toBeUndefined()
})

it('on Windows, nobody is sent to a package that does not exist, but to WSL 2 or a server', () => {
  expect(reasonForNone('win32')).toMatch(/^There is no embedded PostgreSQL on Windows.* WSL 2/)
  for (const platform of ['linux', 'darwin'] as const) expect(reasonForNone(platform)).toBeUndefined()
})

it('a transcript has the same name below its folder on Windows as anywhere else, and its session the same key', () => {
  const folder = String.raw`C:\Users\Omar Lee\.claude\projects`
  const file = win32.join(folder, 'door', '7c9e6679.jsonl')
  expect(nameBelow(folder, file, win32)).toBe('door/7c9e6679.jsonl')
  expect(nameBelow('/home/omar/projects', '/home/omar/projects/door/7c9e6679.jsonl')).toBe(
    'door/7c9e6679.jsonl',
  )
  expect(stemOf(file)).toBe('7c9e6679')
})

it('the pager is the first that is named, with its options, if it is there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'annals-pager-'))
  try {
    for (const name of ['less', 'most']) writeFileSync(join(folder, name), '#!/bin/sh\n')
    chmodSync(join(folder, 'most'), 0o755)
    const PATH = `/nowhere:${folder}`
    expect(pagerOf({ PATH, PAGER: 'most -s' })).toBe('most -s')
    expect(pagerOf({ PATH, PAGER: 'most', ANNALS_PAGER: join(folder, 'most') })).toBe(join(folder, 'most'))
    for (const PAGER of ['', 'cat', 'more']) expect(pagerOf({ PATH, PAGER })).toBeUndefined()
    // It cannot be executed.
    expect(pagerOf({ PATH })).toBeUndefined()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
