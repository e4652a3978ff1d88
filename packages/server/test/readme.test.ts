import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { describeSettings } from '../../kits/src/configuration/config.ts'
import { ERROR_NAMES, statusOf } from '../../kits/src/errors.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

/** Where a source file that a page names may be: named from the root, or from the server's src, as its layers are. */
const HOMES = ['', 'packages/archive/src', 'packages/kits/src', 'packages/server/src']
const SOURCE_FILE = /`([\w./-]+\/[\w.-]+\.(?:ts|sql|json))`/g
const LINK = /\]\((?!https?:)([^)#]+)/g
/** A link with an anchor, to a page or within one. */
const ANCHOR = /\]\((?!https?:)([^)#]*)#([^)]+)\)/g

const read = (page: string) => readFileSync(join(ROOT, page), 'utf8')

describe('the page on security', () => {
  it('says of every package that runs in production why it is there', () => {
    const manifests = ['server', 'embedded-postgres'].map((name) =>
      JSON.parse(read(`packages/${name}/package.json`)),
    )
    const packages = manifests.flatMap(({ dependencies, optionalDependencies, peerDependencies }) =>
      Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }),
    )
    const [, section = ''] = /## Dependencies\n(.*?)\n## /s.exec(read('docs/security.md')) ?? []
    const named = section.split('\n').flatMap((line) => {
      const [, packages = ''] = /^\| (`[^|]+) \|/.exec(line) ?? []
      return [...packages.matchAll(/`([^`]+)`/g)].map((match) => match[1]!)
    })
    expect(named.sort()).toEqual([...new Set(packages)].sort())
  })
})

describe('the page on architecture', () => {
  it('finds a route with its command', () => {
    const [, text, folder] = /`grep -rn "([^"]+)" (\S+)`/.exec(read('docs/architecture.md'))!
    const files = readdirSync(join(ROOT, folder!), { recursive: true, encoding: 'utf8' })
    const found = files.filter(
      (name) => name.endsWith('_routes.ts') && read(join(folder!, name)).includes(text!),
    )
    expect(found).toHaveLength(1)
  })
})

describe('the page on settings', () => {
  it('has the settings that there are, with their defaults', () => {
    const table = /<!-- settings -->\n([\s\S]*?)\n?<!-- \/settings -->/.exec(read('docs/settings.md'))?.[1]
    // Copy what is expected here into the page when a setting changes.
    expect(table).toBe(settingsTable())
  })
})

describe('the reference of what operations share', () => {
  it('has every error with its status', () => {
    const rows = [...read('docs/api.md').matchAll(/^\| (\d{3}) \| `(\w+)` \|/gm)]
    const documented = rows.map(([, status, name]) => `${status} ${name}`).sort()
    expect(documented).toEqual(ERROR_NAMES.map((name) => `${statusOf(name)} ${name}`).sort())
  })
})

describe('the index of the docs', () => {
  it('has every page of the docs', () => {
    const listed = [...read('docs/README.md').matchAll(LINK)].map(([, link]) => link!)
    const pages = readdirSync(join(ROOT, 'docs')).filter(
      (name) => name.endsWith('.md') && name !== 'README.md',
    )
    expect(pages.filter((name) => !listed.includes(name))).toEqual([])
  })
})

describe('every page', () => {
  it.each(PAGES)('%s links to pages that are there', (page) => {
    const links = [...read(page).matchAll(LINK)].map(([, link]) => link!)
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([])
  })

  it.each(PAGES)('%s links to headings that are there', (page) => {
    const links = [...read(page).matchAll(ANCHOR)].map(([, link, anchor]) => [link!, anchor!] as const)
    const wrong = links.filter(([link, anchor]) => {
      const target = link === '' ? page : join(dirname(page), link)
      return target.endsWith('.md') && !anchorsOf(read(target)).includes(anchor)
    })
    expect(wrong).toEqual([])
  })

  // The page of the commands names files of its reader's.
  it.each(PAGES.filter((page) => page !== 'docs/cli.md'))('%s names source files that are there', (page) => {
    const names = [...read(page).matchAll(SOURCE_FILE)].map(([, name]) => name!)
    expect(names.filter((name) => !HOMES.some((home) => existsSync(join(ROOT, home, name))))).toEqual([])
  })
})

/** Pages that a reader may start from, beside those of the folders that have many. */
const ALL_PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'python/README.md'],
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
  ...['packages', 'packages/adapters'].flatMap((folder) =>
    readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}/README.md`),
  ),
].filter((page) => page.endsWith('.md') && existsSync(join(ROOT, page)))

/** Names of ours that nobody has published: a registry has no such package, or a stranger's. */
const FROM_REGISTRY: Array<[line: RegExp, allowed: RegExp | undefined]> = [
  [
    /npm (?:install|i|add) (?:.* )?@annals\//,
    /Until a release is on npm, `?npm run pack -- |Once a release is on npm, /,
  ],
  [/npx (?:-y |--yes )?@annals\//, /Until a release is on npm, run it in a clone/],
  [/npx annals/, /\bclone\b/],
  [
    /npx (?:-y|--yes) annals|npm (?:install|i) (?:.* )?annals(?![\w./-])|"npx"[^\n]*\n?[^\n]*annals/,
    undefined,
  ],
  [/pip install (?:.* )?["']?annals(?![\w-]*\.whl|-\*)|uvx? (?:add|pip install )?annals/, undefined],
  [/npmjs\.com\/package\/@?annals|pypi\.org\/project\/annals/, undefined],
]

it('no page sends a reader to a registry for a name that is not published, unless it says how to do without', () => {
  const wrong = ALL_PAGES.flatMap((page) => {
    const text = read(page)
    return FROM_REGISTRY.flatMap(([line, allowed]) => {
      const [found] = line.exec(text) ?? []
      return found === undefined || allowed?.test(text) ? [] : [`${page}: ${found}`]
    })
  })
  expect(ALL_PAGES.length).toBeGreaterThan(40)
  expect(wrong).toEqual([])
})

/** Pages whose commands are for people who work on Annals. */
const FOR_DEVELOPERS = /(?:benchmarks|console|high-availability|reliability|scale)\.md$/

it('no command that a reader pastes has a comment, which zsh passes on as words', () => {
  const commented = ALL_PAGES.filter((page) => !FOR_DEVELOPERS.test(page)).flatMap((page) =>
    [...read(page).matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block]) =>
      block!.split('\n').filter((line) => /(?:^|\s)#\s/.test(line)),
    ),
  )
  expect(commented).toEqual([])
})

function settingsTable(): string {
  const rows = describeSettings().map((row) => `| \`${row.variable}\` | ${row.default} | ${row.meaning} |`)
  return ['| variable | default | meaning |', '|---|---|---|', ...rows].join('\n')
}

/** The anchors that headings get where the repository is shown. */
function anchorsOf(page: string): string[] {
  return [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  )
}
