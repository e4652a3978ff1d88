import { IBAN_LENGTHS } from '../src/countries.js'
import type { Detector } from '../src/detectors.js'

/** A text, and all that is to be found in it. */
export interface Sample {
  text: string
  found: Array<{ detector: Detector; value: string }>
}

/** Numbers that look random, and are the same in every run. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const random = randomFrom(20_261)
const whole = (below: number) => Math.floor(random() * below)
const pick = <T>(items: readonly T[]): T => items[whole(items.length)]!
const from = (alphabet: string, length: number) =>
  Array.from({ length }, () => alphabet[whole(alphabet.length)]).join('')

const DIGITS = '0123456789'
const HEX = '0123456789abcdef'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const UPPER = LOWER.toUpperCase()
const ALNUM = DIGITS + LOWER + UPPER
const URL64 = `${ALNUM}_-`
/** A key that ends with a dash would be cut by people as well. */
const url64 = (length: number) => from(URL64, length - 1) + pick([...ALNUM])
const base64url = (text: string) => Buffer.from(text).toString('base64url')

const uuid = () => `${from(HEX, 8)}-${from(HEX, 4)}-4${from(HEX, 3)}-a${from(HEX, 3)}-${from(HEX, 12)}`

const KEYS: Record<string, () => string> = {
  annals: () => `sk-annals-${from(URL64, 43)}-${url64(6)}`,
  anthropic: () => `sk-ant-${pick(['api03', 'admin01', 'oat01', 'sid01'])}-${url64(93 + whole(10))}`,
  aws: () => pick(['AKIA', 'ASIA']) + from(`${UPPER}234567`, 16),
  databricks: () => `dapi${from(HEX, 32)}`,
  digitalocean: () => `${pick(['dop', 'doo', 'dor'])}_v1_${from(HEX, 64)}`,
  github: () =>
    random() < 0.3
      ? `github_pat_${from(ALNUM, 22)}_${from(ALNUM, 59)}`
      : `${pick(['ghp', 'gho', 'ghu', 'ghs', 'ghr'])}_${from(ALNUM, 36)}`,
  gitlab: () => `${pick(['glpat', 'gldt', 'glrt', 'glptt', 'glcbt'])}-${url64(20)}`,
  google: () => (random() < 0.3 ? `GOCSPX-${url64(28)}` : `AIza${url64(35)}`),
  huggingface: () => `hf_${from(LOWER + UPPER, 34)}`,
  npm: () => `npm_${from(ALNUM, 36)}`,
  openai: () =>
    pick([
      () => `sk-proj-${url64(48 + whole(110))}`,
      () => `sk-svcacct-${url64(60)}`,
      () => `sk-${from(ALNUM, 20)}T3BlbkFJ${from(ALNUM, 20)}`,
    ])(),
  pypi: () => `pypi-AgEIcHlwaS5vcmc${url64(140)}`,
  sendgrid: () => `SG.${url64(22)}.${url64(43)}`,
  shopify: () => `${pick(['shpat', 'shpca', 'shppa', 'shpss'])}_${from(HEX, 32)}`,
  slack: () =>
    random() < 0.2
      ? `hooks.slack.com/services/T${from(UPPER + DIGITS, 9)}/B${from(UPPER + DIGITS, 10)}/${from(ALNUM, 24)}`
      : `${pick(['xoxb', 'xoxp', 'xoxa', 'xapp'])}-${from(DIGITS, 12)}-${from(DIGITS, 12)}-${from(ALNUM, 24)}`,
  stripe: () => `${pick(['sk', 'rk'])}_${pick(['live', 'test'])}_${from(ALNUM, 24 + whole(75))}`,
  twilio: () => `SK${from(HEX, 32)}`,
  airtable: () => `pat${from(ALNUM, 14)}.${from(HEX, 64)}`,
  alibaba: () => `LTAI${from(ALNUM, 20)}`,
  artifactory: () => (random() < 0.5 ? `AKCp${from(ALNUM, 69)}` : `cmVmd${from(ALNUM, 59)}`),
  atlassian: () => `${pick(['ATATT3xFfGF0', 'ATCTT3xFfGN0'])}${url64(170)}=${from('0123456789ABCDEF', 8)}`,
  azure: () => `${from(ALNUM, 3)}8Q~${url64(34)}`,
  brave: () => `BSA${url64(28)}`,
  brevo: () => `xkeysib-${from(HEX, 64)}-${from(ALNUM, 16)}`,
  buildkite: () => `bkua_${from(HEX, 40)}`,
  cerebras: () => `csk-${from(LOWER + DIGITS, 48)}`,
  circleci: () => `CCIPAT_${from(ALNUM, 22)}_${from(HEX, 40)}`,
  clickhouse: () => `4b1d${from(ALNUM, 38)}`,
  cloudflare: () =>
    random() < 0.5
      ? `${pick(['cfut', 'cfat', 'cfk'])}_${from(ALNUM, 40)}${from(HEX, 8)}`
      : `v1.0-${from(HEX, 24)}-${from(HEX, 146)}`,
  contentful: () => `CFPAT-${url64(43)}`,
  deepseek: () => `sk-${from(HEX, 32)}`,
  discord: () => `${base64url(`1${from(DIGITS, 17)}`)}.${from(ALNUM, 6)}.${url64(38)}`,
  docker: () => (random() < 0.5 ? `dckr_pat_${url64(27)}` : `dckr_oat_${url64(32)}`),
  doppler: () => `dp.${pick(['pt', 'ct', 'sa', 'scim', 'audit', 'st.prd'])}.${from(ALNUM, 43)}`,
  dynatrace: () => `dt0c01.${from(UPPER + DIGITS, 24)}.${from(UPPER + DIGITS, 64)}`,
  e2b: () => `e2b_${from(HEX, 40)}`,
  elevenlabs: () => `sk_${from(HEX, 48)}`,
  figma: () => `fig${pick(['d', 'p'])}_${url64(43)}`,
  firecrawl: () => `fc-${from(HEX, 32)}`,
  fly: () => (random() < 0.5 ? `fo1_${url64(43)}` : `fm2_${from(`${ALNUM}+/`, 200)}==`),
  grafana: () =>
    random() < 0.5 ? `glsa_${from(ALNUM, 32)}_${from(HEX, 8)}` : `glc_eyJ${from(ALNUM, 120)}==`,
  groq: () => `gsk_${from(ALNUM, 52)}`,
  heroku: () => `HRKU-AA${url64(58)}`,
  hubspot: () => `pat-${pick(['na1', 'eu1'])}-${uuid()}`,
  jina: () => `jina_${from(HEX, 32)}${url64(28)}`,
  langfuse: () => `sk-lf-${uuid()}`,
  langsmith: () => `lsv2_${pick(['pt', 'sk'])}_${from(HEX, 32)}_${from(HEX, 10)}`,
  linear: () => (random() < 0.5 ? `lin_api_${from(ALNUM, 40)}` : `lin_oauth_${from(HEX, 64)}`),
  mailchimp: () => `${from(HEX, 32)}-us${1 + whole(21)}`,
  mailgun: () => `key-${from(HEX, 32)}`,
  netlify: () => `nfp_${from(ALNUM, 36)}`,
  newrelic: () => (random() < 0.5 ? `NRAK-${from(UPPER + DIGITS, 27)}` : `NRII-${url64(32)}`),
  notion: () => (random() < 0.5 ? `ntn_${from(DIGITS, 11)}${from(ALNUM, 35)}` : `secret_${from(ALNUM, 43)}`),
  nvidia: () => `nvapi-${url64(64)}`,
  onepassword: () => `ops_eyJ${from(ALNUM, 800)}`,
  openrouter: () => `sk-or-v1-${from(HEX, 64)}`,
  perplexity: () => `pplx-${from(ALNUM, 48)}`,
  pinecone: () => `pcsk_${from(ALNUM, 6)}_${from(ALNUM, 63)}`,
  planetscale: () => `pscale_${pick(['tkn', 'pw', 'oauth'])}_${url64(43)}`,
  posthog: () => `phx_${from(ALNUM, 43)}`,
  postman: () => `PMAK-${from(HEX, 24)}-${from(HEX, 34)}`,
  prefect: () => `pnu_${from(ALNUM, 36)}`,
  pulumi: () => `pul-${from(HEX, 40)}`,
  replicate: () => `r8_${from(ALNUM, 37)}`,
  resend: () => `re_${from(ALNUM, 8)}_${from(ALNUM, 24)}`,
  rubygems: () => `rubygems_${from(HEX, 48)}`,
  sentry: () =>
    random() < 0.5 ? `sntryu_${from(HEX, 64)}` : `sntrys_eyJ${from(ALNUM, 150)}=_${from(`${ALNUM}+/`, 43)}`,
  sourcegraph: () => `sgp_${pick(['', 'local_', `${from(HEX, 16)}_`])}${from(HEX, 40)}`,
  square: () => (random() < 0.5 ? `sq0atp-${url64(22)}` : `EAAA${url64(60)}`),
  supabase: () => (random() < 0.5 ? `sbp_${from(HEX, 40)}` : `sb_secret_${from(URL64, 22)}_${url64(8)}`),
  tailscale: () => `tskey-${pick(['auth', 'api', 'client'])}-k${from(ALNUM, 11)}CNTRL-${from(ALNUM, 32)}`,
  tavily: () => `tvly-${pick(['', 'dev-', 'prod-'])}${from(ALNUM, 32)}`,
  telegram: () => `${1 + whole(9)}${from(DIGITS, 8 + whole(2))}:AA${url64(33)}`,
  terraform: () => `${from(ALNUM, 14)}.atlasv1.${url64(67)}`,
  together: () => `tgp_v1_${url64(43)}`,
  typeform: () => `tfp_${url64(58)}`,
  vault: () => `hvs.${url64(92)}`,
  vercel: () => `${pick(['vcp', 'vci', 'vca', 'vcr', 'vck'])}_${from(ALNUM, 56)}`,
  voyage: () => `pa-${url64(43)}`,
  wandb: () => `wandb_v1_${url64(77)}`,
  xai: () => `xai-${from(ALNUM, 80)}`,
  private_key: () => {
    if (random() < 0.2) return `AGE-SECRET-KEY-1${from('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}`
    const kind = pick(['RSA ', 'EC ', 'OPENSSH ', 'ENCRYPTED ', ''])
    const lines = Array.from({ length: 3 + whole(20) }, () => from(`${ALNUM}+/`, 64))
    return `-----BEGIN ${kind}PRIVATE KEY-----\n${lines.join('\n')}\n-----END ${kind}PRIVATE KEY-----`
  },
  jwt: () => {
    const header = base64url(JSON.stringify({ alg: pick(['HS256', 'RS256', 'ES256', 'EdDSA']), typ: 'JWT' }))
    return `${header}.${base64url(JSON.stringify({ sub: from(DIGITS, 10), iat: 1_600_000_000 + whole(9e7) }))}.${url64(43 + whole(300))}`
  },
}

/** What is known by what stands around it. */
const IN_PLACE: Record<string, (value: string) => string> = {
  assigned: (value) =>
    pick([
      `DD_API_KEY=${value}`,
      `export CLOUDFLARE_API_TOKEN="${value}"`,
      `twilio_auth_token: ${value}`,
      `client_secret = '${value}'`,
      `AccountKey=${value};EndpointSuffix=core.windows.net`,
      `{"apiKey": "${value}", retries: 2,}`,
      `SENTRY_AUTH_TOKEN='${value}' make`,
      `SESSION_SECRET: ${value}`,
    ]),
  url_password: (value) =>
    pick([
      `postgres://annals:${value}@db.internal:5432/annals`,
      `DATABASE_URL=postgresql://app_user:${value}@10.0.0.7/app?sslmode=require`,
      `mongodb+srv://svc:${value}@cluster0.ab1cd.mongodb.net`,
      `redis://:${value}@cache:6379/0`,
      `git clone https://ada:${value}@git.example.com/team/repo.git`,
      `amqps://worker:${value}@[::1]:5671/%2f`,
    ]),
}

const PASSWORDS: Record<keyof typeof IN_PLACE, () => string> = {
  assigned: () => pick([() => from(HEX, 32), () => from(ALNUM, 40), () => `${from(`${ALNUM}+/`, 85)}A==`])(),
  url_password: () =>
    pick([() => from(ALNUM, 12), () => `${from(LOWER, 6)}!${from(DIGITS, 3)}`, () => from(HEX, 32)])(),
}

const NAMES = 'omar ada grace linus rémi jürgen zoë maria.garcia o_neill anna-lena k.w.chen priya'.split(' ')
const HOSTS =
  'example.com mail.example.org example.co.uk uni-köln.de example.museum corp.example.io a.b.c.example.net xn--mnchen-3ya.de'.split(
    ' ',
  )

const luhnEnd = (digits: string) =>
  [...DIGITS].find((end) => {
    const all = [...(digits + end)].reverse().map(Number)
    const sum = all.reduce(
      (total, digit, at) => total + (at % 2 ? (2 * digit > 9 ? 2 * digit - 9 : 2 * digit) : digit),
      0,
    )
    return sum % 10 === 0
  })!

function cardDigits(): string {
  const [begin, length] = pick([
    ['4', 16],
    [`5${1 + whole(5)}`, 16],
    ['2221', 16],
    ['34', 15],
    ['37', 15],
    ['6011', 16],
    ['65', 16],
    ['3528', 16],
    ['36', 14],
    ['62', 16],
    ['4', 19],
  ] as const)
  const digits = begin + from(DIGITS, length - begin.length - 1)
  return digits + luhnEnd(digits)
}

function grouped(digits: string, mark: string): string {
  const lengths = digits.length === 15 ? [4, 6, 5] : digits.length === 14 ? [4, 6, 4] : [4, 4, 4, 4, 4]
  const begins = lengths.map((_, index) => lengths.slice(0, index).reduce((sum, length) => sum + length, 0))
  return lengths
    .map((length, index) => digits.slice(begins[index], begins[index]! + length))
    .filter(Boolean)
    .join(mark)
}

function ibanText(): string {
  const [country, length] = pick(
    [...IBAN_LENGTHS].filter(([name]) => 'DE GB FR NL ES IT PL CH AT BE MT'.includes(name)),
  )
  const account = from(country === 'GB' || country === 'NL' ? UPPER : DIGITS, 4) + from(DIGITS, length - 8)
  const value = [...`${account}${country}00`].map((character) => Number.parseInt(character, 36)).join('')
  const check = String(98n - (BigInt(value) % 97n)).padStart(2, '0')
  return country + check + account
}

const PERSONAL: Record<string, () => string> = {
  email: () => {
    const local = pick([
      () => pick(NAMES),
      () => `${pick(NAMES)}+${from(LOWER, 5)}`,
      () => `${pick(NAMES)}${whole(99)}`,
      () => `${from(LOWER, 1)}.${pick(NAMES)}`,
    ])()
    return `${local}${random() < 0.05 ? '%40' : '@'}${pick(HOSTS)}`
  },
  phone: () =>
    pick([
      () => `+1${pick(['212', '415', '646', '808'])}555${from(DIGITS, 4)}`,
      () => `+1 (415) 555-${from(DIGITS, 4)}`,
      () => `+1-212-555-${from(DIGITS, 4)}`,
      () => `+1.646.555.${from(DIGITS, 4)}`,
      () => `+49 30 ${1 + whole(9)}${from(DIGITS, 6)}`,
      () => `+4915${from(DIGITS, 9)}`,
      () => `+44 20 7${from(DIGITS, 3)} ${from(DIGITS, 4)}`,
      () => `+44 (0) 7700 ${from(DIGITS, 6)}`,
      () => `+33 6 ${from(DIGITS, 2)} ${from(DIGITS, 2)} ${from(DIGITS, 2)} ${from(DIGITS, 2)}`,
      () => `+91 98${from(DIGITS, 3)} ${from(DIGITS, 5)}`,
      () => `+8613${from(DIGITS, 9)}`,
      () => `+55 11 9${from(DIGITS, 4)}-${from(DIGITS, 4)}`,
      () => `+358 40 ${from(DIGITS, 7)}`,
      () => `+41/44/${from(DIGITS, 3)}/${from(DIGITS, 4)}`,
    ])(),
  card: () => {
    const digits = cardDigits()
    return pick([digits, grouped(digits, ' '), grouped(digits, '-')])
  },
  iban: () => {
    const iban = ibanText()
    return pick([iban, iban.replace(/(.{4})(?=.)/g, '$1 '), iban.toLowerCase()])
  },
}

/** Where people and machines put such things. */
const AROUND: Array<(value: string) => string> = [
  (value) => value,
  (value) => `Please use ${value}, thanks.`,
  (value) => `KEY=${value}\nPORT=8029`,
  (value) => `{"token":"${value}","port":8029}`,
  (value) => `curl -H "Authorization: Bearer ${value}" https://api.example.com/v1`,
  (value) => `Das ist ${value}. Und weiter.`,
  (value) => `お客様（${value}）から`,
  (value) => `<td>${value}</td>`,
  (value) => `\`${value}\` (${value})`,
  (value) => `a line\nConst x = '${value}';\n// 2026-11-26T09:30:00Z 200 12 ms`,
  (value) => `line\\n${value}\\nline`,
  (value) => `https://example.com/?q=${value}&page=2`,
]

const PER_DETECTOR = 240

function inPlace(): Sample[] {
  return Object.entries(IN_PLACE).flatMap(([name, around]) =>
    Array.from({ length: PER_DETECTOR }, (_, index) => {
      const value = PASSWORDS[name]!()
      const text = index % 2 ? around(value) : `a line\n${around(value)}\nand one more`
      return { text, found: [{ detector: name as Detector, value }] }
    }),
  )
}

/** With something in them. Where two findings are in a text, it says so twice. */
export function positives(): Sample[] {
  return [...inPlace(), ...standing()]
}

function standing(): Sample[] {
  return Object.entries({ ...KEYS, ...PERSONAL }).flatMap(([name, make]) =>
    Array.from({ length: PER_DETECTOR }, (_, index) => {
      const value = make()
      const text = AROUND[index % AROUND.length]!(value)
      const times = text.split(value).length - 1
      return { text, found: Array.from({ length: times }, () => ({ detector: name as Detector, value })) }
    }),
  )
}

/** Written by hand: they look like something, and are nothing. */
const NOTHING = [
  'npm install lodash@4.17.21 @types/node@20.1.0 react@next',
  'git clone git@github.com:example/annals.git',
  'icon@2x.png and logo@3x.svg are in assets/',
  '@app.route("/users/<id>") def f(): pass',
  'docker pull alpine@sha256:c5b1261d6d3e43071626931fc004f70149baeba2c8ec672bd4f27761f8e1ad6b',
  'ping @channel and @ada, or mail to nobody@localhost',
  'OPENAI_API_KEY=sk-... ANTHROPIC_API_KEY=sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
  'aws_access_key_id = AKIAIOSFODNN7EXAMPLE',
  'aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  'Authorization: Bearer YOUR_API_KEY_GOES_HERE',
  'export STRIPE=sk_test_your_key_here_please_1234',
  'ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
  'sk-learn and sk-image are packages; task-manager-of-the-project-with-a-long-name-for-a-branch',
  'the class sk-fading-circle of SpinKit, desk-reservation-service-production-deployment-6d4cf56db6',
  'sk-proj-add-login-page-to-the-application-shell-and-fix-tests-v2, glpat-name-of-a-longer-branch',
  '4111:1111:1111:1111::1 4111a1111a1111a1111 are no numbers of cards',
  '-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----',
  '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----',
  'eyJhbGciOi is how a token begins; eyJ.eyJ.eyJ is none, and neither is eyJmb28iOiJiYXIifQ.e30.c2lnbmF0dXJlc2lnbmF0dXJlc2ln',
  'C++17, g++ 13, +1 for that, a+12345678, 3+14155552671, ++49301234567',
  'UTC+0200, 2026-11-26T09:30:00+02:00, +10:30, GMT+5',
  'It rose by +12.5 % to +1,250,000 and +48.85661 N, +2.352222 E, +48.856613',
  'a diff: +123456 -98765, @@ -12,7 +12,9 @@',
  '+1234567890123456789 and +1 123 456 7890 and +1-055-123-4567 are no numbers',
  '4111111111111112 4111 1111 1111 1113 5500-0000-0000-0005 fail the check',
  '4000000000000000 and 5555555555555555555 and 0000 0000 0000 0000',
  'id 41111111111111110000, 0.4111111111111111, v4.4111111111111111, x4111111111111111, 4111111111111111a',
  '1732612345678 1732612345678901 1732612345678901234 are times',
  'ISBN 978-3-16-148410-0, tracking 1Z999AA10123456784, order 12-3456-7890',
  'DE00 3704 0044 0532 0130 00 and GB82WEST12345698765433 fail; DE89370400440532013 is short',
  'NO12, IT20 BE16, AT20 PL28 and ES24 begin like accounts',
  'MT31 MALT 0110 0001 2345 MTLC AST0 01S and FR76 3000 6000 0112 3456 7890 188',
  'hf_transfer, npm_config_registry, npm_package_version, hf_hub_download_and_cache_everything_first',
  'postgres://postgres:postgres@localhost/app, redis://:$REDIS_PASSWORD@cache, redis://:{password}@cache, https://user:password@host, ssh://git:***@host',
  'http://localhost:8029/a:b@c, see http://[::1]:8029/@ada, https://example.com:443/x?y=a:b@c.d/',
  'next_page_token=CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA, page_token: EAAaBlBUOkNBUQ1234567, csrf_token="k29fj2k39fj2k39fj2k3"',
  'api_key = os.environ["API_KEY_2024_01"], auth_token: getToken2024v11x2(user), secret_key=settings.SECRET_KEY_V123',
  'access_key: 2024-05-17T10-20-30, api_token=version-2024-10-01-preview, SECRET_KEY=change-me-0123-4567-8901',
  'API_TOKEN=/run/secrets/api-token-0123456789, client_secret: 1732612345678901234567',
  'sk-or-v1-…, gsk_, xai-…, pplx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, r8_short, key-value-pairs-of-the-cache',
  'pa-per-plane, re_search_results_of_the_day, fc-barcelona, hvs.vault, dp.pt.short, pat.match, secret_santa_list_of_names',
  '12:34:56, 123456789:80, 10:AAbc, MTIzNDU2.abc.def, abc8Q~x, bot12345678:token, d41d8cd98f00b204e9800998ecf8427e-us-east',
  'SG.something.else, SGD 120.50, SK: Slovakia, SKU-12345678901234567890123456789012',
  'AIzaNothing, AKIA, ASIA-PACIFIC, AKIAIOSFODNN',
  'dapi is a prefix, shpat_ too, glpat- as well, xoxb-1 and whsec_short',
  'a 𝒻unny @ sign, user @ example . com, me(at)example.com',
  'x@y, a@b.c, @@@@, foo@.com, foo@-bar, foo@bar..com',
]

const MADE: Array<() => string> = [
  () => `${from(HEX, 8)}-${from(HEX, 4)}-7${from(HEX, 3)}-a${from(HEX, 3)}-${from(HEX, 12)}`,
  () => from(HEX, 40),
  () => from(HEX, 64),
  () => `sha512-${from(`${ALNUM}+/`, 86)}==`,
  () => String(1_600_000_000_000 + whole(2e11)),
  () => `${1_600_000_000 + whole(2e8)}${from(DIGITS, 9)}`,
  () => `v${whole(30)}.${whole(30)}.${whole(100)}-beta.${whole(9)}`,
  () => `${whole(256)}.${whole(256)}.${whole(256)}.${whole(256)}:${1_024 + whole(60_000)}`,
  () => `req_${from(ALNUM, 24)} call_${from(ALNUM, 24)} toolu_01${from(ALNUM, 22)} msg_${from(HEX, 48)}`,
  () => `chatcmpl-${from(ALNUM, 29)} resp_${from(HEX, 48)} cus_${from(ALNUM, 14)} pi_${from(ALNUM, 24)}`,
  () => `data:image/png;base64,iVBORw0KGgo${from(`${ALNUM}+/`, 200)}`,
  () => `/usr/lib/node_modules/@${from(LOWER, 6)}/${from(LOWER, 8)}/index.js:${whole(900)}:${whole(80)}`,
  () =>
    `$${whole(9_999)}.${from(DIGITS, 2)}, ${whole(999)},${from(DIGITS, 3)},${from(DIGITS, 3)}; ${random()}`,
  () => `+${whole(99)}% ${-whole(99)}.${from(DIGITS, 4)} ${whole(1e9)}`,
  () => `${from(UPPER, 3)}-${from(DIGITS, 6)} #${whole(99_999)} R${from(DIGITS, 9)}`,
  () =>
    `@${from(LOWER, 8)} ${from(LOWER, 5)}@${whole(20)}.${whole(20)}.${whole(20)} @media (min-width: ${whole(2_000)}px)`,
  () => {
    const digits = cardDigits()
    return digits.slice(0, -1) + ((Number(digits.at(-1)) + 1 + whole(9)) % 10)
  },
  () => {
    const iban = ibanText()
    return iban.slice(0, -1) + ((Number(iban.at(-1)) + 1) % 10)
  },
  () => `eu-west-${whole(4)}.prod-${from(LOWER, 5)}.svc sk-${from(LOWER, 6)}-${from(LOWER, 8)}`,
  () => `${from(ALNUM, 22)}T3Blbk${from(ALNUM, 12)} ${url64(43)} ${url64(86)}`,
]

const PER_KIND = 120

/** With nothing in them. */
export function negatives(): Sample[] {
  const made = MADE.flatMap((make) =>
    Array.from({ length: PER_KIND }, (_, index) => AROUND[index % AROUND.length]!(make())),
  )
  return [...NOTHING, ...made].map((text) => ({ text, found: [] }))
}
