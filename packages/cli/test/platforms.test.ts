import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, win32 } from 'node:path'
import { expect, it } from 'vitest'
import { checkRights } from '../../archive/src/doctor/data_directory.ts'
import { stemOf } from '../../importers/src/format.ts'
import { nameBelow } from '../src/client/import_sources.ts'
import { openerOf } from '../src/client/open_console.ts'
import { onInterrupt } from '../src/terminal/interrupt.ts'
import { pagerOf } from '../src/terminal/pager.ts'

it('a browser is opened by what each platform has, and on none without a display', () => {
  expect(openerOf('darwin', {})).toBe('open')
  expect(openerOf('win32', {})).toBe('explorer')
  expect(openerOf('linux', { WAYLAND_DISPLAY: 'wayland-0' })).toBe('xdg-open')
  expect(openerOf('linux', { DISPLAY: '' })).toBeUndefined()
})

it('what has modes elsewhere has the rights of its folder on Windows', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'annals-rights-'))
  try {
    chmodSync(folder, 0o777)
    expect(await checkRights(folder, 'linux')).toMatchObject({ state: 'failure' })
    expect(await checkRights(folder, 'win32')).toMatchObject({ state: 'ok' })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('Ctrl-Break on Windows asks to stop, as Ctrl-C does', () => {
  const heard: string[] = []
  const restore = onInterrupt((signal) => heard.push(signal))
  process.emit('SIGBREAK', 'SIGBREAK')
  restore()
  process.emit('SIGBREAK', 'SIGBREAK')
  expect(heard).toEqual(['SIGBREAK'])
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
