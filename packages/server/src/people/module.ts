import { Loop } from '@annals/kits/lifecycle/background.js'
import type { Module, OpenModule } from '@annals/kits/module.js'
import { describeError } from '@annals/kits/postgres/database_errors.js'
import { Issuer } from './issuer.js'
import { checkPeople } from './sign_ins.js'

/** Between two looks for people about whom the issuer is to be asked again, on average. */
const LOOK_MS = 20_000

export interface People extends OpenModule {
  /** At which people sign in, if one is configured. */
  issuer: Issuer | undefined
}

export const PEOPLE_MODULE: Module<People> = {
  name: 'people',
  open: (kits) => {
    const { config, background } = kits
    const { database, logger } = background
    const issuer = config.oidc_issuer === undefined ? undefined : new Issuer(config)
    const failure = 'the issuer could not be asked about people'
    const warn = (error: unknown) => logger.warn({ err: describeError(error) }, failure)
    const check = (from: Issuer) => () => checkPeople(database, from, warn)
    return {
      issuer,
      routes: async () => (await import('./people_routes.js')).peopleRoutes(kits),
      ...(issuer && {
        background: () => new Loop({ ...background, failure, poll: check(issuer), poll_ms: LOOK_MS }),
      }),
    }
  },
  tables: [
    {
      name: 'members',
      is_reference: true,
      backed_up: { key: 'id', type: 'uuid', project: 'project_id' },
      handled:
        'They go with their project, and outlive an erased user, who is somebody else. Never exported.',
    },
    {
      name: 'people',
      is_reference: true,
      handled: 'Whoever signs in again is there again. Neither exported nor backed up.',
    },
    {
      name: 'device_logins',
      is_reference: true,
      handled: 'They count for ten minutes, and go with the member. Neither exported nor backed up.',
    },
  ],
}
