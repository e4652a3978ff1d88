import type { ModuleRoutes } from '../http/module.js'
import { DATA_ID } from '../http/openapi/openapi_links.js'
import { learningSpaceRoutes } from './learning_space_routes.js'
import { LearningSpace } from './learning_space_schema.js'

export const LEARNING_ROUTES: ModuleRoutes = {
  project: learningSpaceRoutes,
  schemas: [LearningSpace],
  links: {
    createLearningSpace: {
      to: ['getLearningSpace', 'mergeLearningSpaceMeta', 'deleteLearningSpace'],
      parameters: { learning_space_id: DATA_ID },
    },
  },
}
