/**
 * Where an answer leads: which operations take the id that it has. Tools walk along these, readers of the reference
 * see them. By the path parameter that is filled.
 */
export interface OperationLinks {
  to: readonly string[]
  parameters: Readonly<Record<string, string>>
}

export const DATA_ID = '$response.body#/data/id'

export interface LinkedOperation {
  responses: Record<
    string,
    { links?: Record<string, { operationId: string; parameters: OperationLinks['parameters'] }> }
  >
}

/** Adds links to the successful answers of an operation that has some. */
export function addLinks({ responses }: LinkedOperation, lead: OperationLinks | undefined): void {
  if (!lead) return
  const { parameters } = lead
  const links = lead.to.map((operationId) => [operationId, { operationId, parameters }])
  for (const [status, response] of Object.entries(responses))
    if (status.startsWith('2')) response.links = Object.fromEntries(links)
}
