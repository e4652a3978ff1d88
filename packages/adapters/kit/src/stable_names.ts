import { v5 } from 'uuid'

/** The namespace of all names that adapters turn into ids (RFC 9562, section 5.5). It must never change. */
const NAMESPACE = '6f2c1f0a-4d0e-5b7c-9a3d-8e1b7c5f2a90'

/**
 * The UUIDv5 of a list of strings: the same list gives the same id in every process and every language. The first one
 * names the framework, so that two adapters never share a session by accident.
 */
export function stableId(...names: string[]): string {
  return v5(JSON.stringify(names), NAMESPACE)
}
