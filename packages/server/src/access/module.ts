import type { Module, OpenModule } from '@annals/kits/module.js'
import { SessionTokens } from './session_tokens.js'

export interface Access extends OpenModule {
  sessionTokens: SessionTokens
}

/** Tokens for one session, or those of a user: signed, and narrower than a key. */
export const ACCESS_MODULE: Module<Access> = {
  name: 'access',
  open: ({ config, reserved }) => {
    const sessionTokens = new SessionTokens(reserved, config.token_cache_ms)
    return {
      sessionTokens,
      routes: async () => (await import('./token_routes.js')).tokenRoutes(sessionTokens),
    }
  },
  tables: [
    {
      name: 'signing_keys',
      is_reference: true,
      handled:
        'Of the installation, which makes the first when it needs one. Neither exported nor backed up.',
    },
  ],
}
