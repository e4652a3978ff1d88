import type { ModuleRoutes } from '../http/module.js'
import { userRoutes } from './user_routes.js'
import { User } from './user_schema.js'

export const USER_ROUTES: ModuleRoutes = { project: userRoutes, schemas: [User] }
