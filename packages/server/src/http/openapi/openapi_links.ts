/**
 * Links from answers to the operations that take the ids in them. Tools follow them; readers of the reference see
 * them. Keyed by the answering operation, then by the path parameter to fill.
 */
const SESSION_OPERATIONS = [
  'getSession',
  'deleteSession',
  'copySession',
  'getConfigs',
  'replaceConfigs',
  'mergeConfigs',
  'addEvent',
  'listEvents',
  'addMessage',
  'listMessages',
  'countTokens',
  'getContext',
  'readTimeline',
  'appendEntries',
]
const DATA_ID = '$response.body#/data/id'

const LEADS: Record<string, { to: string[]; parameters: Record<string, string> }> = {
  createSession: { to: SESSION_OPERATIONS, parameters: { session_id: DATA_ID } },
  copySession: { to: SESSION_OPERATIONS, parameters: { session_id: '$response.body#/data/new_session_id' } },
  addMessage: {
    to: ['mergeMessageMeta'],
    parameters: { session_id: '$request.path.session_id', message_id: DATA_ID },
  },
  createLearningSpace: {
    to: ['getLearningSpace', 'mergeLearningSpaceMeta', 'deleteLearningSpace'],
    parameters: { learning_space_id: DATA_ID },
  },
  createProject: {
    to: ['changeProject', 'deleteProject', 'createToken', 'listTokens'],
    parameters: { project_id: '$response.body#/data/project/id' },
  },
  createToken: {
    to: ['revokeToken'],
    parameters: { project_id: '$request.path.project_id', token_id: DATA_ID },
  },
}

/** The members of an OpenAPI document that contain links. */
interface DocumentView {
  paths?: Record<string, Record<string, { operationId?: string; responses: Record<string, ResponseView> }>>
}
interface ResponseView {
  links?: Record<string, { operationId: string; parameters: Record<string, string> }>
}

/** Adds the links to the successful answers of each operation that has some. */
export function addLinks(document: DocumentView): void {
  for (const operation of Object.values(document.paths ?? {}).flatMap((path) => Object.values(path))) {
    const lead = LEADS[operation.operationId ?? '']
    if (!lead) continue
    const { parameters } = lead
    const links = lead.to.map((operationId) => [operationId, { operationId, parameters }])
    for (const [status, response] of Object.entries(operation.responses))
      if (status.startsWith('2')) response.links = Object.fromEntries(links)
  }
}
