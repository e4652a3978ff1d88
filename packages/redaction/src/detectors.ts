/** What can be found, by name: how its mask is called, and whether it is a secret or personal data. */
export const DETECTORS = {
  airtable: { mask: 'AIRTABLE_TOKEN', of: 'secrets' },
  alibaba: { mask: 'ALIBABA_KEY', of: 'secrets' },
  annals: { mask: 'ANNALS_KEY', of: 'secrets' },
  anthropic: { mask: 'ANTHROPIC_KEY', of: 'secrets' },
  artifactory: { mask: 'ARTIFACTORY_TOKEN', of: 'secrets' },
  atlassian: { mask: 'ATLASSIAN_TOKEN', of: 'secrets' },
  aws: { mask: 'AWS_KEY', of: 'secrets' },
  azure: { mask: 'AZURE_SECRET', of: 'secrets' },
  brave: { mask: 'BRAVE_KEY', of: 'secrets' },
  brevo: { mask: 'BREVO_KEY', of: 'secrets' },
  buildkite: { mask: 'BUILDKITE_TOKEN', of: 'secrets' },
  cerebras: { mask: 'CEREBRAS_KEY', of: 'secrets' },
  circleci: { mask: 'CIRCLECI_TOKEN', of: 'secrets' },
  clickhouse: { mask: 'CLICKHOUSE_KEY', of: 'secrets' },
  cloudflare: { mask: 'CLOUDFLARE_TOKEN', of: 'secrets' },
  contentful: { mask: 'CONTENTFUL_TOKEN', of: 'secrets' },
  databricks: { mask: 'DATABRICKS_TOKEN', of: 'secrets' },
  deepseek: { mask: 'DEEPSEEK_KEY', of: 'secrets' },
  digitalocean: { mask: 'DIGITALOCEAN_TOKEN', of: 'secrets' },
  discord: { mask: 'DISCORD_TOKEN', of: 'secrets' },
  docker: { mask: 'DOCKER_TOKEN', of: 'secrets' },
  doppler: { mask: 'DOPPLER_TOKEN', of: 'secrets' },
  dynatrace: { mask: 'DYNATRACE_TOKEN', of: 'secrets' },
  e2b: { mask: 'E2B_KEY', of: 'secrets' },
  elevenlabs: { mask: 'ELEVENLABS_KEY', of: 'secrets' },
  figma: { mask: 'FIGMA_TOKEN', of: 'secrets' },
  firecrawl: { mask: 'FIRECRAWL_KEY', of: 'secrets' },
  fly: { mask: 'FLY_TOKEN', of: 'secrets' },
  github: { mask: 'GITHUB_TOKEN', of: 'secrets' },
  gitlab: { mask: 'GITLAB_TOKEN', of: 'secrets' },
  google: { mask: 'GOOGLE_KEY', of: 'secrets' },
  grafana: { mask: 'GRAFANA_TOKEN', of: 'secrets' },
  groq: { mask: 'GROQ_KEY', of: 'secrets' },
  heroku: { mask: 'HEROKU_TOKEN', of: 'secrets' },
  hubspot: { mask: 'HUBSPOT_TOKEN', of: 'secrets' },
  huggingface: { mask: 'HUGGINGFACE_TOKEN', of: 'secrets' },
  jina: { mask: 'JINA_KEY', of: 'secrets' },
  langfuse: { mask: 'LANGFUSE_KEY', of: 'secrets' },
  langsmith: { mask: 'LANGSMITH_KEY', of: 'secrets' },
  linear: { mask: 'LINEAR_TOKEN', of: 'secrets' },
  mailchimp: { mask: 'MAILCHIMP_KEY', of: 'secrets' },
  mailgun: { mask: 'MAILGUN_KEY', of: 'secrets' },
  netlify: { mask: 'NETLIFY_TOKEN', of: 'secrets' },
  newrelic: { mask: 'NEWRELIC_KEY', of: 'secrets' },
  notion: { mask: 'NOTION_TOKEN', of: 'secrets' },
  npm: { mask: 'NPM_TOKEN', of: 'secrets' },
  nvidia: { mask: 'NVIDIA_KEY', of: 'secrets' },
  onepassword: { mask: 'ONEPASSWORD_TOKEN', of: 'secrets' },
  openai: { mask: 'OPENAI_KEY', of: 'secrets' },
  openrouter: { mask: 'OPENROUTER_KEY', of: 'secrets' },
  perplexity: { mask: 'PERPLEXITY_KEY', of: 'secrets' },
  pinecone: { mask: 'PINECONE_KEY', of: 'secrets' },
  planetscale: { mask: 'PLANETSCALE_TOKEN', of: 'secrets' },
  posthog: { mask: 'POSTHOG_TOKEN', of: 'secrets' },
  postman: { mask: 'POSTMAN_KEY', of: 'secrets' },
  prefect: { mask: 'PREFECT_KEY', of: 'secrets' },
  pulumi: { mask: 'PULUMI_TOKEN', of: 'secrets' },
  pypi: { mask: 'PYPI_TOKEN', of: 'secrets' },
  replicate: { mask: 'REPLICATE_TOKEN', of: 'secrets' },
  resend: { mask: 'RESEND_KEY', of: 'secrets' },
  rubygems: { mask: 'RUBYGEMS_KEY', of: 'secrets' },
  sendgrid: { mask: 'SENDGRID_KEY', of: 'secrets' },
  sentry: { mask: 'SENTRY_TOKEN', of: 'secrets' },
  shopify: { mask: 'SHOPIFY_TOKEN', of: 'secrets' },
  slack: { mask: 'SLACK_TOKEN', of: 'secrets' },
  sourcegraph: { mask: 'SOURCEGRAPH_TOKEN', of: 'secrets' },
  square: { mask: 'SQUARE_TOKEN', of: 'secrets' },
  stripe: { mask: 'STRIPE_KEY', of: 'secrets' },
  supabase: { mask: 'SUPABASE_TOKEN', of: 'secrets' },
  tailscale: { mask: 'TAILSCALE_KEY', of: 'secrets' },
  tavily: { mask: 'TAVILY_KEY', of: 'secrets' },
  telegram: { mask: 'TELEGRAM_TOKEN', of: 'secrets' },
  terraform: { mask: 'TERRAFORM_TOKEN', of: 'secrets' },
  together: { mask: 'TOGETHER_KEY', of: 'secrets' },
  twilio: { mask: 'TWILIO_KEY', of: 'secrets' },
  typeform: { mask: 'TYPEFORM_TOKEN', of: 'secrets' },
  vault: { mask: 'VAULT_TOKEN', of: 'secrets' },
  vercel: { mask: 'VERCEL_TOKEN', of: 'secrets' },
  voyage: { mask: 'VOYAGE_KEY', of: 'secrets' },
  wandb: { mask: 'WANDB_KEY', of: 'secrets' },
  xai: { mask: 'XAI_KEY', of: 'secrets' },
  assigned: { mask: 'SECRET', of: 'secrets' },
  url_password: { mask: 'PASSWORD', of: 'secrets' },
  private_key: { mask: 'PRIVATE_KEY', of: 'secrets' },
  jwt: { mask: 'JWT', of: 'secrets' },
  email: { mask: 'EMAIL', of: 'personal' },
  phone: { mask: 'PHONE', of: 'personal' },
  card: { mask: 'CARD', of: 'personal' },
  iban: { mask: 'IBAN', of: 'personal' },
} as const

export type Detector = keyof typeof DETECTORS

export const DETECTOR_NAMES = Object.keys(DETECTORS) as Detector[]

/** The places of names in that list. */
export const DETECTOR_NUMBERS = Object.fromEntries(DETECTOR_NAMES.map((name, at) => [name, at])) as Readonly<
  Record<Detector, number>
>

/** Names that stand for several detectors. */
export const GROUPS = ['secrets', 'personal'] as const
export type Group = (typeof GROUPS)[number]

export function detectorsOf(name: Detector | Group): Detector[] {
  return DETECTOR_NAMES.filter((detector) => detector === name || DETECTORS[detector].of === name)
}

/** A part of a text, and what it is. */
export interface Finding {
  from: number
  to: number
  detector: Detector
}
