import type { ModuleRoutes } from '../http/module.js'
import { searchRoutes } from './search_routes.js'
import { FoundEntry } from './search_schema.js'

export const SEARCH_ROUTES: ModuleRoutes = {
  project: searchRoutes,
  schemas: [FoundEntry],
  links: {},
}
