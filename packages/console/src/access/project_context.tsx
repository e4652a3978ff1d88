import type { Annals } from '@annals/client'
import { createContext, type Dispatch, useContext } from 'react'
import type { Account, Accounts, Change } from './accounts.ts'

/** The project that is shown, and the client that reads it. */
export interface Project extends Account {
  annals: Annals
  /** Whether the token may change anything: without it no button that writes is shown. */
  may_write: boolean
}

export const ProjectContext = createContext<Project | undefined>(undefined)

export function useProject(): Project {
  const project = useContext(ProjectContext)
  if (!project) throw new Error('No project is open here.')
  return project
}

export const AccountsContext = createContext<{ accounts: Accounts; change: Dispatch<Change> } | undefined>(
  undefined,
)

export function useAccounts() {
  const value = useContext(AccountsContext)
  if (!value) throw new Error('There are no accounts here.')
  return value
}
