import type { OutcomeWords } from '@annals/messages/session'

/** A project that this browser has signed in to. Its token is in a cookie, which no script can read. */
export interface Account {
  project_id: string
  project: string
  scopes: string[]
  /** The address of the person who signed in with an account; undefined after signing in with a key. */
  person?: string | undefined
  /** What its own words for outcomes mean; undefined: it has none. */
  outcomes?: OutcomeWords | undefined
}

/** What this browser has signed in to. Another tab has the same. */
export interface Accounts {
  open: Account[]
  /** The current project of this tab. */
  active: string | undefined
  is_admin: boolean
  /** Whether people sign in at an issuer. */
  has_issuer?: boolean | undefined
}

const ACTIVE = 'annals.project'

export type Change =
  | { do: 'open'; account: Account }
  | { do: 'show'; project_id: string }
  | { do: 'close'; project_id: string }
  | { do: 'administrate'; is_admin: boolean }

/** The accounts after a change. */
export function changed(accounts: Accounts, change: Change): Accounts {
  switch (change.do) {
    case 'open': {
      const others = accounts.open.filter(({ project_id }) => project_id !== change.account.project_id)
      return { ...accounts, open: [...others, change.account], active: change.account.project_id }
    }
    case 'show':
      return { ...accounts, active: change.project_id }
    case 'close': {
      const open = accounts.open.filter(({ project_id }) => project_id !== change.project_id)
      const active = accounts.active === change.project_id ? open[0]?.project_id : accounts.active
      return { ...accounts, open, active }
    }
    case 'administrate':
      return { ...accounts, is_admin: change.is_admin }
  }
}

/** The accounts of a tab that was just opened: it shows the project that this tab, or else any tab, showed last. */
export function accountsOf({
  projects,
  ...access
}: { projects: Account[] } & Pick<Accounts, 'is_admin' | 'has_issuer'>): Accounts {
  const kept = [sessionStorage.getItem(ACTIVE), localStorage.getItem(ACTIVE)]
  const active = kept.find((id) => projects.some(({ project_id }) => project_id === id))
  return { open: projects, active: active ?? projects[0]?.project_id, ...access }
}

/** Keeps which project the tab shows: its id, which is no secret. */
export function keepActive({ active }: Accounts): void {
  for (const storage of [sessionStorage, localStorage]) {
    if (active === undefined) storage.removeItem(ACTIVE)
    else storage.setItem(ACTIVE, active)
  }
}
