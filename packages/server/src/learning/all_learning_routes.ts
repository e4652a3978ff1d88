import type { ModuleRoutes } from '../http/module.js'
import { DATA_ID } from '../http/openapi/openapi_links.js'
import { learningSpaceRoutes } from './learning_space_routes.js'
import { LearningSpace } from './learning_space_schema.js'
import { spaceSessionRoutes } from './sessions/space_session_routes.js'
import { SpacePolicy, SpaceSession } from './sessions/space_session_schema.js'
import { spaceReadingRoutes } from './statements/space_reading_routes.js'
import { statementRoutes } from './statements/statement_routes.js'
import { SkillVersion, Statement } from './statements/statement_schema.js'

const OF_SPACE = ['getLearningSpace', 'mergeLearningSpaceMeta', 'deleteLearningSpace']
// Not learnFromSession: it takes a session's id, too, which a new space does not say.
const LEARNING = ['listSpaceSessions', 'getSpacePolicy', 'setSpacePolicy']
const READING = ['listStatements', 'addStatement', 'getSpaceContext', 'getSpaceHistory']

export const LEARNING_ROUTES: ModuleRoutes = {
  project(app, parts) {
    learningSpaceRoutes(app, parts)
    spaceSessionRoutes(app, parts)
    statementRoutes(app)
    spaceReadingRoutes(app)
  },
  schemas: [LearningSpace, SpacePolicy, SkillVersion, SpaceSession, Statement],
  links: {
    createLearningSpace: {
      to: [...OF_SPACE, ...LEARNING, ...READING],
      parameters: { learning_space_id: DATA_ID },
    },
    addStatement: { to: ['changeStatement'], parameters: { statement_id: DATA_ID } },
  },
}
