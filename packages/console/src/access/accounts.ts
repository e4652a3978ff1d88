/** A project that this tab may open. */
export interface Account {
  token: string
  project_id: string
  project: string
  scopes: string[]
}

/** The tab's sign-ins. They are kept only for the tab, and dropped when it is closed. */
export interface Accounts {
  open: Account[]
  /** The current project. */
  active: string | undefined
  admin_token: string | undefined
}

const KEY = 'annals.accounts'
export const NOBODY: Accounts = { open: [], active: undefined, admin_token: undefined }

export type Change =
  | { do: 'open'; account: Account }
  | { do: 'show'; project_id: string }
  | { do: 'close'; project_id: string }
  | { do: 'administrate'; admin_token: string | undefined }

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
      return { ...accounts, admin_token: change.admin_token }
  }
}

export function readAccounts(): Accounts {
  try {
    return { ...NOBODY, ...JSON.parse(sessionStorage.getItem(KEY) ?? '{}') }
  } catch {
    return NOBODY
  }
}

export function keepAccounts(accounts: Accounts): void {
  sessionStorage.setItem(KEY, JSON.stringify(accounts))
}
