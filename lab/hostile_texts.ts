/**
 * Texts that are dear to look through for secrets and personal data: such in which something begins everywhere, is nearly
 * there, or is there.
 */

export type HostileText = [name: string, json: string]

/** How keys begin that have a form of their own. */
export const PREFIXES =
  `pat LTAI AGE-SECRET-KEY-1 sk-annals- sk-ant- AKCp cmVmd ATATT3 ATCTT3 ATBB AKIA ASIA ABIA ACCA ABSKQmVkcm9ja0FQSUtleS
BSA xkeysib- bkua_ csk- CCIPAT_ 4b1d cfut_ cfat_ cfk_ v1.0- CFPAT- dapi sk- dop_v1_ doo_v1_ dor_v1_ dckr_pat_ dckr_oat_
dp. dt0c01. dt0s01. dt0s16. e2b_ sk_ figd_ figp_ figo_ figu_ fc- fo1_ fm1a_ fm1r_ fm2_ github_pat_ ghp_ gho_ ghu_ ghs_
ghr_ glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct- AIza GOCSPX- ya29. 1//0 glsa_ glc_ gsk_
HRKU- pat-na1- pat-na2- pat-eu1- pat-ap1- hf_ api_org_ jina_ sk-lf- lsv2_pt_ lsv2_sk_ lin_api_ lin_oauth_ key- nfp_ NRAK-
NRII- NRIQ- NRRA- ntn_ secret_ npm_ nvapi- ops_ sk-proj- sk-svcacct- sk-admin- sk-service- sk-or-v1- pplx- pcsk_
pscale_tkn_ pscale_pw_ pscale_oauth_ PMAK- phx_ phs_ pnu_ pnb_ pul- pypi-AgE r8_ re_ rubygems_ SG. sntryu_ sntrys_ shpat_
shpca_ shppa_ shpss_ xox xapp- xoxe.xox sgp_ sq0atp- sq0csp- sq0idp- EAAA sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sbp_
sb_secret_ tskey- tvly- tgp_v1_ SK tfp_ hvs. hvb. hvr. vcp_ vci_ vca_ vcr_ vck_ pa- wandb_v1_ xai-`.split(
    /\s+/,
  )

/** What is repeated. Some of it is found, some of it has one character too few. */
const PIECES = [
  '4111 1111 1111 1112 ',
  '4111 1111 1111 1111 ',
  '4111111111111111 ',
  '3782 822463 10005 ',
  '4111-',
  '1234567890',
  '1-1 ',
  '+4915112345678',
  '+1 (415) 555-2671 ',
  '+1 ',
  '+1-',
  'DE89 3704 0044 0532 0130 01 ',
  'DE89 3704 0044 0532 0130 00 ',
  'MT84 MALT 0110 0001 2345 MTLC AST0 01S ',
  'DE89 ',
  'a.b@c.d@e.f@',
  'omar@example.com ',
  'a@b.co ',
  'a@b.co',
  'a@',
  `${'x'.repeat(64)}@${'y.'.repeat(126)} `,
  '用@用.',
  'é@',
  '%40',
  '%2B1',
  '\\u0040',
  '&#64;',
  '\\',
  '&',
  '\uff14\uff11\uff11\uff11 ',
  'a\u200b',
  'sk-ant-api03-',
  'ghp_kJ4mQ8sT2vX6zB1nC5kJ4mQ8sT2vX6zB1nC5 ',
  'eyJhbGciOiJub25lIn0.',
  'eyJhbGciOiJIUzI1NiJ9.e30.aB3dE5gH7jK9mN1pQ3sT5 ',
  'eyJ.',
  '-----BEGIN PRIVATE KEY-----\n',
  '-----BEGIN PRIVATE KEY-----!',
  '-----B',
  'ops_eyJaaaaaaaaaaaaaaaaaaaa/',
  'ABSKQmVkcm9ja0FQSUtleSxxxx/',
  '12345678:AA',
  'MTIzNDU2Nzg5MDEyMzQ1Njc4.abcdef.',
  'abc8Q~',
  'a://b:c@d ',
  `a://b:${'c:'.repeat(100)} `,
  'password:',
  'api_key="kJ4mQ8sT2vX6zB1nC5xxxx" ',
  'secret_key=aaaaaaaaaaaaaaaaaaaaa.',
  `api_key=${'a1B2'.repeat(49)}(`,
  'aws_secret_access_key=',
  'hooks.slack.com/services/T',
  '{"a":"',
  '{"a":["',
  '[',
  'WVdGaFlXRmhZV0Zo',
  'AAAAAAAA',
  'YUBiLmNvIGFAYi5jbyBh',
  'a ',
  '1 ',
  'a-',
  '\n',
]

/** Different each time, so that none is known already. */
const COUNTED: Record<string, (n: number) => string> = {
  'addresses that differ': (n) => `${n.toString(36)}@b.co `,
  'telephone numbers that differ': (n) => `+49${1_000_000 + n} `,
  'passwords that differ': (n) => `a://b:x${n}y@c `,
  'keys that differ': (n) => `ghp_kJ4mQ8sT2vX6zB1nC5kJ4mQ8sT2vX6${(1e9 + n).toString(36)} `,
}

function counted(make: (n: number) => string, bytes: number): string {
  const pieces: string[] = []
  for (let length = 0, n = 0; length < bytes; n++) {
    pieces.push(make(n))
    length += pieces[n]!.length
  }
  return pieces.join('').slice(0, bytes)
}

/** `bytes`: as JSON writes it. */
function repeated(piece: string, bytes: number): string {
  return piece.repeat(Math.floor(bytes / (Buffer.byteLength(JSON.stringify(piece)) - 2)))
}

/** As JSON of so many bytes: one string each, or a list of short ones. */
export function hostileTexts(bytes: number): HostileText[] {
  const inside = ['omar@example.com ', 'sk-ant-api03-', '4111 1111 1111 1111 ']
  const items = [
    '"a"',
    '"omar@example.com"',
    '"ghp_kJ4mQ8sT2vX6zB1nC5kJ4mQ8sT2vX6zB1nC5"',
    '4111111111111111',
    '{}',
    '{"type":"a","data":{}}',
  ]
  return [
    ...PIECES.map((piece) => text(shown(piece), repeated(piece, bytes))),
    ...Object.entries(COUNTED).map(([name, make]) => text(name, counted(make, bytes))),
    ...inside.flatMap((piece) => {
      const long = repeated(piece, (bytes * 3) / 4)
      return [
        text(`${shown(piece)} in base64`, Buffer.from(long).toString('base64')),
        text(`${shown(piece)} in JSON in JSON`, JSON.stringify({ a: JSON.stringify([long]) })),
      ]
    }),
    ...items.map((item): HostileText => {
      const list = Array(Math.floor(bytes / (item.length + 1))).fill(item)
      return [`a list of ${item}`, `[${list.join(',')}]`]
    }),
  ]
}

/** The same of each way in which keys begin. */
export function hostileKeys(bytes: number): HostileText[] {
  return PREFIXES.flatMap((prefix) => [
    text(prefix, repeated(prefix, bytes)),
    text(`${prefix} with a beginning`, repeated(`${prefix}aB3dE5gH7jK9mN1pQ3s `, bytes)),
  ])
}

function text(name: string, value: string): HostileText {
  return [name, JSON.stringify(value)]
}

function shown(piece: string): string {
  return piece.length > 40 ? `${piece.slice(0, 40)}…` : piece
}
