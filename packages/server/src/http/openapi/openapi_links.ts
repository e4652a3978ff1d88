/**
 * Where an answer leads: which operations take the id that it has. Tools walk along these, readers of the reference
 * see them. By the path parameter that is filled.
 */
export interface OperationLinks {
  to: readonly string[]
  parameters: Readonly<Record<string, string>>
}

/** The id of what an answer shows. */
export const DATA_ID = '$response.body#/data/id'

/** The members of an OpenAPI document that contain links. */
interface DocumentView {
  paths?: Record<string, Record<string, { operationId?: string; responses: Record<string, ResponseView> }>>
}
interface ResponseView {
  links?: Record<string, { operationId: string; parameters: Record<string, string> }>
}

/** Adds the links to the successful answers of each operation that has some. */
export function addLinks(document: DocumentView, links_of: Readonly<Record<string, OperationLinks>>): void {
  for (const operation of Object.values(document.paths ?? {}).flatMap((path) => Object.values(path))) {
    const lead = links_of[operation.operationId ?? '']
    if (!lead) continue
    const { parameters } = lead
    const links = lead.to.map((operationId) => [operationId, { operationId, parameters }])
    for (const [status, response] of Object.entries(operation.responses))
      if (status.startsWith('2')) response.links = Object.fromEntries(links)
  }
}
