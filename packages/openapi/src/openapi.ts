import type { AppServer } from '@annals/kits/http/app_server.js'
import type { OperationLinks } from '@annals/kits/http/openapi/openapi_links.js'
import type { Described } from '@annals/kits/module.js'
import { VERSION } from '@annals/kits/version.js'
import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import Fastify, { type RouteOptions } from 'fastify'
import { answersOf, ErrorAnswer } from './answers.js'

const INTRODUCTION = `Each run of an agent is a **session**: an append-only log of messages and events, numbered 1, 2, 3, … in the order in which they were stored.

## Try it

\`npx annals key\` prints an API key. With it as \`$KEY\`, create a session under an id of yours, append to it, and read it:

\`\`\`sh
API=http://127.0.0.1:8029/api/v1
SESSION=01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b71
curl -s $API/session -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"use_uuid":"'$SESSION'","user":"alice","configs":{"agent":"refunds"}}'
curl -s $API/session/$SESSION/messages -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"format":"openai","blob":{"role":"user","content":"Where is my refund?"}}'
curl -s $API/session/$SESSION/timeline -H "Authorization: Bearer $KEY"
\`\`\`

## What all operations share

- **Keys.** \`Authorization: Bearer <API_KEY>\` names the project. The scope \`read\` allows GET and HEAD, \`write\` the rest.
- **Answers** under \`/api/v1\` are \`{ code, error, msg, data? }\`. In an error, \`code\` is the HTTP status, \`error\` a name to program against, \`msg\` a sentence for people.
- **Retries.** A write with an \`Idempotency-Key\` is carried out once, however often it is sent. \`If-Match\` appends only if nobody else has.
- **Pages.** While \`has_more\` is true, send \`next_cursor\` as \`cursor\`, with the same query.
- **Live.** \`GET /session/{session_id}/timeline\` with \`Accept: text/event-stream\` follows a log.
- **Strict.** Unknown fields and parameters are refused; ignoring a misspelt filter would show too much.

There are clients for TypeScript (\`@annals/client\`) and Python (\`annals\`), and the console at [/console](/console).`

const DOCUMENT: NonNullable<FastifyDynamicSwaggerOptions['openapi']> = {
  openapi: '3.1.0',
  info: {
    title: 'Annals',
    version: VERSION,
    summary: 'The session store for AI agents.',
    description: INTRODUCTION,
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/', description: 'This server.' }],
  tags: [
    { name: 'Sessions', description: 'A session belongs to a project, and optionally to a user.' },
    { name: 'Events', description: "Structured entries of a session's log." },
    { name: 'Messages', description: 'Messages of a session, in five formats.' },
    { name: 'Attachments', description: 'Bytes of any kind, by their SHA-256.' },
    { name: 'Timeline', description: 'Messages and events together: pages, live tail, batches.' },
    { name: 'Learning spaces', description: 'What was learned, for a project or one of its users.' },
    { name: 'Skills', description: 'Agent Skills that people wrote, and those that spaces have learnt.' },
    {
      name: 'Users',
      description: "Users are named by the caller's own identifiers and created on first use.",
    },
    { name: 'Webhooks', description: 'New entries, posted to URLs of yours.' },
    { name: 'Service', description: 'Whether the service is available.' },
    {
      name: 'Administration',
      description: 'Projects and their tokens; only available if an admin token is configured.',
    },
  ],
  security: [{ project_token: [] }],
  components: {
    securitySchemes: {
      project_token: { type: 'http', scheme: 'bearer', description: "A project's API key, `sk-…`." },
      admin_token: { type: 'http', scheme: 'bearer', description: 'The token in ANNALS_ADMIN_TOKEN.' },
    },
  },
}

/** The operations as OpenAPI 3.1, from the schemas that validate them. */
export async function describeOperations(
  operations: RouteOptions[],
  modules: readonly Described[],
): Promise<object> {
  const unused = (() => () => () => true) as never
  const compilersFactory = { buildValidator: unused, buildSerializer: unused }
  const app: AppServer = Fastify({ exposeHeadRoutes: false, schemaController: { compilersFactory } })
  for (const schema of [...modules.flatMap(({ schemas = [] }) => schemas), ErrorAnswer]) app.addSchema(schema)
  await app.register(swagger, {
    openapi: DOCUMENT,
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `schema_${index}`),
    },
    hideUntagged: true,
    transformObject: (document) => {
      if (!('openapiObject' in document)) return document.swaggerObject
      const paths = Object.values((document.openapiObject as DocumentView).paths ?? {})
      const operations = paths.flatMap((path) => Object.values(path))
      allowMissingBodies(operations)
      describeJsonParameters(operations)
      for (const { byte_bodies = {}, form_bodies = {}, links = {} } of modules)
        for (const operation of operations) {
          const { operationId = '' } = operation
          const schema = form_bodies[operationId]
          if (schema) describeBody(operation, 'multipart/form-data', schema)
          for (const type of byte_bodies[operationId] ?? [])
            describeBody(operation, type, type === 'application/json' ? { type: 'object' } : BYTES)
          addLinks(operation, links[operationId], operations)
        }
      shareErrors(document.openapiObject as DocumentView, operations)
      joinLiterals(document.openapiObject)
      return document.openapiObject
    },
  })
  for (const { method, url, schema, config } of operations) {
    const described = {
      ...Object.fromEntries(Object.entries(schema!)),
      response: answersOf(config!.described!),
    }
    app.route({ method, url, schema: described, handler: async () => {} })
  }
  await app.ready()
  return app.swagger()
}

interface DocumentView {
  paths?: Record<string, Record<string, OperationView>>
  components?: Record<string, object>
}

interface OperationView extends LinkedOperation {
  responses: Record<string, ResponseView>
  requestBody?: RequestBodyView
  parameters?: ParameterView[]
}

type ParameterView = NonNullable<LinkedOperation['parameters']>[number] & {
  example?: unknown
  schema?: { type?: string; contentMediaType?: string; examples?: string[]; example?: string }
  content?: Record<string, { schema: object }>
}

interface RequestBodyView {
  required?: boolean
  content: Record<string, { schema?: { required?: string[]; type?: string; format?: string } }>
}

/** A body without required fields may be absent; the plugin marks every body as required. */
function allowMissingBodies(operations: OperationView[]): void {
  for (const { requestBody } of operations) {
    if (requestBody && !requestBody.content['application/json']?.schema?.required?.length)
      requestBody.required = false
  }
}

type ResponseView = LinkedOperation['responses'][string] & {
  headers?: Record<string, object>
  content?: Record<string, { examples?: Record<string, object> }>
}

/**
 * Operations share nearly all of their error answers, so each stands once among the components, under the names of
 * its errors; so do its examples and headers.
 */
function shareErrors(document: DocumentView, operations: OperationView[]): void {
  const shared: Record<'responses' | 'headers' | 'examples', Record<string, object>> = {
    responses: {},
    headers: {},
    examples: {},
  }
  const share = (kind: keyof typeof shared, name: string, value: object) => {
    const known = shared[kind][name]
    if (known && JSON.stringify(known) !== JSON.stringify(value)) return value
    shared[kind][name] = value
    return { $ref: `#/components/${kind}/${name}` }
  }
  const shareAll = (kind: 'headers' | 'examples', values: Record<string, object>) => {
    for (const [name, value] of Object.entries(values)) values[name] = share(kind, name, value)
  }
  for (const { responses } of operations) {
    for (const [status, response] of Object.entries(responses)) {
      shareAll('headers', response.headers ?? {})
      const examples = response.content?.['application/json']?.examples
      if (Number(status) < 400 || !examples) continue
      const names = Object.keys(examples)
      shareAll('examples', examples)
      responses[status] = share('responses', names.join('-or-'), response) as ResponseView
    }
  }
  document.components = { ...document.components, ...shared }
}

/** A choice of texts is one list of them, rather than a schema for each. */
function joinLiterals(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const inner of Object.values(value)) joinLiterals(inner)
  const schema = value as {
    anyOf?: Array<{ type?: string; enum?: string[] }>
    type?: string
    enum?: string[]
  }
  const isOfTexts = schema.anyOf?.every(
    (one) => one.type === 'string' && one.enum && Object.keys(one).length === 2,
  )
  if (!isOfTexts) return
  schema.type = 'string'
  schema.enum = schema.anyOf!.flatMap((one) => one.enum!)
  delete schema.anyOf
}

const BYTES = { type: 'string', format: 'binary' }

/** A body of bytes or a form is not validated, so no schema of its operation describes it. */
function describeBody(operation: OperationView, type: string, schema: object): void {
  const content = { ...operation.requestBody?.content, [type]: { schema } }
  operation.requestBody = { required: true, content }
}

/**
 * For a parameter that is JSON, the description documents the JSON; the schema that validates it only knows a text.
 */
function describeJsonParameters(operations: OperationView[]): void {
  for (const parameter of operations.flatMap(({ parameters }) => parameters ?? [])) {
    const type = parameter.schema?.contentMediaType
    if (!type) continue
    const isArray = String(parameter.example).startsWith('[')
    const schema = isArray
      ? { type: 'array', items: { type: 'object' } }
      : { type: 'object', additionalProperties: true }
    parameter.content = { [type]: { schema } }
    delete parameter.schema
  }
}

interface LinkedOperation {
  operationId?: string
  parameters?: Array<{ name?: string; in?: string; required?: boolean }>
  requestBody?: { content: Record<string, { schema?: { required?: string[] } }> }
  responses: Record<
    string,
    { links?: Record<string, { operationId: string | undefined; parameters: OperationLinks }> }
  >
}

/** Adds links to the successful answers of an operation: to all that take what it fills, and need no more. */
function addLinks(
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
