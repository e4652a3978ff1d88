/** Where an answer leads: the parameters of a path that it fills, and with what. Tools walk along these. */
export type OperationLinks = Readonly<Record<string, string>>

export const DATA_ID = '$response.body#/data/id'

export interface LinkedOperation {
  operationId?: string
  parameters?: Array<{ name?: string; in?: string; required?: boolean }>
  requestBody?: { content: Record<string, { schema?: { required?: string[] } }> }
  responses: Record<
    string,
    { links?: Record<string, { operationId: string | undefined; parameters: OperationLinks }> }
  >
}

/** Adds links to the successful answers of an operation: to all that take what it fills, and need no more. */
export function addLinks(
  { responses }: LinkedOperation,
  parameters: OperationLinks | undefined,
  operations: readonly LinkedOperation[],
): void {
  if (!parameters) return
  const filled = Object.keys(parameters).sort().join()
  const links = operations
    .filter((operation) => neededBy(operation).sort().join() === filled)
    .map(({ operationId }) => [operationId, { operationId, parameters }])
  for (const [status, response] of Object.entries(responses))
    if (status.startsWith('2')) response.links = Object.fromEntries(links)
}

/** The parameters that an operation cannot do without, and the ids in its body. */
function neededBy({ parameters = [], requestBody }: LinkedOperation): string[] {
  const fields = Object.values(requestBody?.content ?? {}).flatMap(({ schema }) => schema?.required ?? [])
  const named = parameters.filter((one) => one.in === 'path' || one.required).map(({ name }) => name!)
  return [...named, ...fields.filter((field) => /_ids?$/.test(field))]
}
