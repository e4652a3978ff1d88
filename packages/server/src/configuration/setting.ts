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
