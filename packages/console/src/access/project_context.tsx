import type { Annals } from '@annals/client'
import { createContext, type Dispatch, useContext } from 'react'
import type { Account, Accounts, Change } from './accounts.ts'

/** The current project, and the client that reads it. */
export interface Project extends Account {
  annals: Annals
  /** Whether the token may write: otherwise buttons that write are hidden. */
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
