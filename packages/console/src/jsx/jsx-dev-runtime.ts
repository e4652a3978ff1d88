import type { ElementType, Key } from 'react'
import { jsx, jsxs } from './jsx-runtime.ts'

/** The same, for development. */

export { Fragment, type JSX } from './jsx-runtime.ts'

export function jsxDEV(
  type: ElementType,
  props: Parameters<typeof jsx>[1],
  key: Key | undefined,
  isStatic: boolean,
) {
  return (isStatic ? jsxs : jsx)(type, props, key)
}
