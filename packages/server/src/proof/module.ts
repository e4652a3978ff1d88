import type { Module } from '../module.js'
import { functionsIn } from '../postgres/stored_function.js'
import * as chains from './chain_queries.js'

/** Logs that prove themselves: entries are chained, and the heads of chains anchored outside. See docs/proof.md. */
export const PROOF_MODULE: Module = {
  name: 'proof',
  functions: functionsIn(chains),
  open: () => ({}),
  tables: [],
}
