/** What can be found, by name: how its mask is called, and whether it is a secret or personal data. */
export const DETECTORS = {
  annals: { mask: 'ANNALS_KEY', of: 'secrets' },
  anthropic: { mask: 'ANTHROPIC_KEY', of: 'secrets' },
  aws: { mask: 'AWS_KEY', of: 'secrets' },
  databricks: { mask: 'DATABRICKS_TOKEN', of: 'secrets' },
  digitalocean: { mask: 'DIGITALOCEAN_TOKEN', of: 'secrets' },
  github: { mask: 'GITHUB_TOKEN', of: 'secrets' },
  gitlab: { mask: 'GITLAB_TOKEN', of: 'secrets' },
  google: { mask: 'GOOGLE_KEY', of: 'secrets' },
  huggingface: { mask: 'HUGGINGFACE_TOKEN', of: 'secrets' },
  npm: { mask: 'NPM_TOKEN', of: 'secrets' },
  openai: { mask: 'OPENAI_KEY', of: 'secrets' },
  pypi: { mask: 'PYPI_TOKEN', of: 'secrets' },
  sendgrid: { mask: 'SENDGRID_KEY', of: 'secrets' },
  shopify: { mask: 'SHOPIFY_TOKEN', of: 'secrets' },
  slack: { mask: 'SLACK_TOKEN', of: 'secrets' },
  stripe: { mask: 'STRIPE_KEY', of: 'secrets' },
  twilio: { mask: 'TWILIO_KEY', of: 'secrets' },
  private_key: { mask: 'PRIVATE_KEY', of: 'secrets' },
  jwt: { mask: 'JWT', of: 'secrets' },
  email: { mask: 'EMAIL', of: 'personal' },
  phone: { mask: 'PHONE', of: 'personal' },
  card: { mask: 'CARD', of: 'personal' },
  iban: { mask: 'IBAN', of: 'personal' },
} as const

export type Detector = keyof typeof DETECTORS

export const DETECTOR_NAMES = Object.keys(DETECTORS) as Detector[]

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
