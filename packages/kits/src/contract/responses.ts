import Type from '#typebox'

export const RequestIdHeader = {
  'X-Request-Id': { type: 'string', description: 'Identifies this request in the log.' },
}

export function byteResponses(
  documented: Record<string, unknown>,
  bytes: Readonly<Record<number, string>>,
  media_type = 'application/octet-stream',
): Record<string, unknown> {
  const content = { [media_type]: { schema: { type: 'string', format: 'binary' } } }
  const ofBytes = Object.entries(bytes).map(([status, description]) => [
    status,
    { description, headers: RequestIdHeader, content },
  ])
  return { ...documented, ...Object.fromEntries(ofBytes) }
}

export function streamResponse(documented: Record<string, unknown>): Record<string, unknown> {
  const success = documented[200] as { content: Record<string, unknown> }
  const content = {
    ...success.content,
    'text/event-stream': { schema: Type.String({ description: 'Server-sent events.' }) },
  }
  return { ...documented, 200: { ...success, content } }
}
