import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { errorOf } from '../harness/blobs.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { skillMd, skillZip, uploadSkill, type ZipEntry, zipOf } from '../harness/skills.ts'

const service = useSharedService()
let project: Project

beforeAll(async () => {
  project = await service.newProject()
})

const upload = (zip: Buffer, fields?: Record<string, string>) =>
  uploadSkill(service.node.url, project.token, zip, fields)
const md: ZipEntry = { path: 'SKILL.md', content: skillMd('refused') }
const many = (count: number): ZipEntry[] =>
  Array.from({ length: count }, (_, n) => ({ path: `f${n}`, content: '' }))
const zeros = Buffer.alloc(4 * 1024 * 1024)

const ZIPS: Record<string, [ZipEntry[], RegExp]> = {
  'a path to the folder above': [[md, { path: '../evil', content: 'x' }], /relative path/],
  'a path in the middle to the folder above': [[md, { path: 'a/../../evil', content: 'x' }], /relative path/],
  'an absolute path': [[md, { path: '/etc/passwd', content: 'x' }], /absolute path/],
  'a path on a drive': [[md, { path: 'C:/evil', content: 'x' }], /absolute path|colon/],
  'a backslash': [[md, { path: 'a\\evil', content: 'x' }], /backslash|invalid characters/],
  'a control character': [[md, { path: 'a\u0007', content: 'x' }], /control character/],
  'a character that turns the writing around': [[md, { path: 'a\u202etxt.exe', content: 'x' }], /invisible/],
  'a character without width': [[md, { path: 'a\u200b.txt', content: 'x' }], /invisible/],
  'a device of Windows': [[md, { path: 'a/CON.txt', content: 'x' }], /device on Windows/],
  'a dot at the end': [[md, { path: 'a./b', content: 'x' }], /ends with a dot/],
  'a space at the end': [[md, { path: 'a ', content: 'x' }], /space/],
  'an empty part of a path': [[md, { path: 'a//b', content: 'x' }], /relative path/],
  'a path that is too long': [[md, { path: `a/${'x'.repeat(600)}`, content: 'x' }], /more than 512/],
  'a symbolic link': [[md, { path: 'link', content: '/etc/passwd', mode: 0o120777 }], /link/],
  'a link with a long name': [
    [md, { path: 'y'.repeat(60_000), content: 'x', mode: 0o120777 }],
    /: "y{100}" is a link or a device\.?/,
  ],
  'a device': [[md, { path: 'device', content: '', mode: 0o020666 }], /device/],
  encryption: [[md, { path: 'a', content: 'x', flags: 0x801 }], /encrypted/],
  'another compression': [[md, { path: 'a', content: 'x', method: 12 }], /Deflate|method/],
  'two files of one name': [[md, { path: 'a', content: 'x' }, { path: 'A', content: 'y' }], /twice/],
  'a file that is a folder, too': [[md, { path: 'a', content: 'x' }, { path: 'a/b', content: 'y' }], /both/],
  'no SKILL.md': [[{ path: 'README.md', content: 'x' }], /no SKILL.md/],
  'SKILL.md too deep': [[{ path: 'a/b/SKILL.md', content: skillMd('deep') }], /no SKILL.md/],
  'too many files': [[md, ...many(200)], /more than 200 files/],
  'too many entries': [
    [md, ...many(1_000).map(({ path }) => ({ path: `${path}/`, content: '', method: 0 }))],
    /1000 entries/,
  ],
  'extra fields without end': [
    [md, ...many(100).map((entry) => ({ ...entry, extra: Buffer.alloc(65_532) }))],
    /131072 bytes of extra fields/,
  ],
  'comments without end': [
    [md, ...many(100).map((entry) => ({ ...entry, comment: 'c'.repeat(65_000) }))],
    /131072 bytes of extra fields and comments/,
  ],
  'a file that is many times as large as the zip': [[md, { path: 'bomb', content: zeros }], /100 times/],
  'files that are too large together': [
    [md, { path: 'a', content: randomBytes(9), declared_bytes: 9 * 1024 * 1024 }],
    /8388608 bytes/,
  ],
  'a file that is larger than it says': [
    [md, { path: 'bomb', content: zeros, declared_bytes: 10 }],
    /too many bytes/,
  ],
  'a file that is smaller than it says': [
    [md, { path: 'a', content: 'abc', declared_bytes: 10 }],
    /not enough bytes/,
  ],
  'a file with another checksum': [[md, { path: 'a', content: 'abc', declared_crc: 1 }], /: "a" is damaged/],
  'SKILL.md that is no UTF-8': [[{ path: 'SKILL.md', content: Buffer.from([0xff, 0xfe]) }], /UTF-8/],
}

const HEADS: Record<string, [string, RegExp]> = {
  'no front matter': ['# A skill', /front matter/],
  'front matter without an end': ['---\nname: a\n', /front matter/],
  'no YAML': ['---\nname: [\n---\n', /no YAML/],
  'a list': ['---\n- a\n---\n', /no map/],
  'no name': ['---\ndescription: x\n---\n', /needs a name/],
  'a name in capitals': ['---\nname: Forms\ndescription: x\n---\n', /needs a name/],
  'a name with a hyphen at its end': ['---\nname: forms-\ndescription: x\n---\n', /needs a name/],
  'a name with two hyphens': ['---\nname: a--b\ndescription: x\n---\n', /needs a name/],
  'a name that is too long': [`---\nname: ${'a'.repeat(65)}\ndescription: x\n---\n`, /needs a name/],
  'no description': ['---\nname: a\n---\n', /needs a description/],
  'an empty description': ['---\nname: a\ndescription: " "\n---\n', /needs a description/],
  'a description that is too long': [
    `---\nname: a\ndescription: ${'x'.repeat(1_025)}\n---\n`,
    /needs a description/,
  ],
  'a description with U+0000': ['---\nname: a\ndescription: "a\\0b"\n---\n', /needs a description/],
  'metadata that is no map': ['---\nname: a\ndescription: x\nmetadata: [1]\n---\n', /metadata/],
  'nesting without end': [`---\na: ${'['.repeat(8_000)}\n---\n`, /no YAML|front matter/],
}

describe('POST /agent_skills', () => {
  it.each(Object.entries(ZIPS))('refuses a zip with %s, and says why', async (_what, [entries, why]) => {
    const refused = await errorOf(await upload(zipOf(entries)))
    expect(refused).toMatchObject({ status: 400, error: 'invalid_request' })
    expect(refused.msg).toMatch(why)
  })

  it.each(Object.entries(HEADS))('refuses a SKILL.md with %s', async (_what, [content, why]) => {
    const refused = await errorOf(await upload(zipOf([{ path: 'SKILL.md', content }])))
    expect(refused).toMatchObject({ status: 400, error: 'invalid_request' })
    expect(refused.msg).toMatch(why)
  })

  it('refuses what is no zip, a cut one, and one that is too large', async () => {
    const zip = skillZip('cut', { 'a.bin': randomBytes(1_000) })
    for (const bytes of [Buffer.alloc(0), Buffer.from('no zip'), zip.subarray(0, 500), zip.subarray(10)]) {
      const refused = await errorOf(await upload(bytes))
      expect(refused).toMatchObject({ status: 400, error: 'invalid_request' })
      expect(refused.msg).toMatch(/[^.]\.$/)
    }
    const large = await errorOf(await upload(Buffer.alloc(8 * 1024 * 1024 + 1)))
    expect(large).toMatchObject({ status: 413, error: 'payload_too_large' })
  })

  it.each([
    [{ user: '' }, /\/user/],
    [{ user: '..' }, /\/user/],
    [{ user: 'a\u0000' }, /meta|stored/],
    [{ meta: '[]' }, /\/meta/],
    [{ meta: '{' }, /\/meta/],
    [{ meta: '{"a":"\\ud800"}' }, /\/meta/],
    [{ colour: 'red' }, /colour/],
  ])('refuses a form with the fields %j', async (fields, why) => {
    const refused = await errorOf(await upload(skillZip('fields'), fields as Record<string, string>))
    expect(refused).toMatchObject({ status: 400, error: 'invalid_request' })
    expect(refused.msg).toMatch(why)
  })

  it.each([
    ['no form', 'text/plain', 'x', 415],
    ['a form without a boundary', 'multipart/form-data', 'x', 400],
    ['an empty form', 'multipart/form-data; boundary=b', '', 400],
    [
      'a form that ends early',
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx',
      400,
    ],
    [
      'a file of another name',
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="zip"; filename="a"\r\n\r\nx\r\n--b--\r\n',
      400,
    ],
    [
      'two files',
      'multipart/form-data; boundary=b',
      `${'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'.repeat(2)}--b--\r\n`,
      400,
    ],
    [
      'a field that is given twice, with two values',
      'multipart/form-data; boundary=b',
      `${['x', 'y'].map((user) => `--b\r\nContent-Disposition: form-data; name="user"\r\n\r\n${user}\r\n`).join('')}--b--\r\n`,
      400,
    ],
    [
      'thousands of parts',
      'multipart/form-data; boundary=b',
      `${'--b\r\nContent-Disposition: form-data; name="user"\r\n\r\nx\r\n'.repeat(3_000)}--b--\r\n`,
      400,
    ],
  ])('refuses %s', async (_what, type, body, status) => {
    const headers = { Authorization: `Bearer ${project.token}`, 'Content-Type': type }
    const response = await fetch(`${service.node.url}/api/v1/agent_skills`, { method: 'POST', headers, body })
    expect((await errorOf(response)).status).toBe(status)
  })
})
