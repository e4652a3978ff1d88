/** A setting of the service: its variable, what it means, its default and its bounds. */
export interface Setting {
  variable: string
  meaning: string
  unit?: string
  default: string | number | undefined
  min?: number
  max?: number
  pattern?: Pick<RegExp, 'test'>
  takes?: string
}

/** Of a setting that is off by default. */
export const SWITCH = { default: 'false', pattern: /^(true|false)$/, takes: 'true or false' } as const
