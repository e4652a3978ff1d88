import { randomBytes } from 'node:crypto'
import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import { DEFAULT_RULES, faultOf, type Rule } from '@annals/redaction'
import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { audited } from '../projects/audit.js'
import { READ_RULES, SET_RULES } from './mask_queries.js'
import { REDACTION_BODIES, Redaction } from './redaction_schema.js'

const operation = operationsOf('Redaction')
const SECRET_BYTES = 32

type Parts = Pick<Kits, 'database'>

/** Stores rules, or that there are none. The key's grant brings them to every node, as it brings a revocation. */
async function setRules({ database }: Parts, request: FastifyRequest, rules: readonly Rule[] | null) {
  const { project_id, grant, address } = request
  const json = rules && JSON.stringify(rules)
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  await audited(database.of('operator'), `key ${grant!.key_id}, from ${address}`, async (connection) => {
    const found = await connection.query(SET_RULES, [project_id, json, secret])
    if (found.length === 0) throw new AnnalsError('unauthorized')
    return { act: { action: 'project.change', project_id, details: { redaction: rules } }, result: undefined }
  })
  return `{"rules":${json}}`
}

const ownRoutes = (parts: Parts) =>
  allOf(
    operation({
      call: 'GET /redaction',
      id: 'getRedaction',
      scope: 'admin',
      summary: "Read the project's redaction rules",
      returns: 'The rules.',
      data: Type.Ref('Redaction'),
      json: async ({ database, project_id }) => {
        const [row] = await database.query(READ_RULES, [project_id])
        return `{"rules":${row?.rules ?? 'null'}}`
      },
    }),

    operation({
      call: 'PUT /redaction',
      id: 'setRedaction',
      scope: 'admin',
      body: REDACTION_BODIES.setRedaction,
      summary: "Set the project's redaction rules",
      description:
        'They replace all existing rules, and apply on every node within 5 seconds. Without `rules`: secrets are masked before they are stored, and personal data is masked for masked keys. Stored data does not change.',
      returns: 'The rules.',
      data: Type.Ref('Redaction'),
      json: async (request, _reply, { rules = DEFAULT_RULES as Rule[] }) => {
        const fault = faultOf(rules as Rule[])
        if (fault) throw invalidRequest(`${fault.pointer} cannot be used: ${fault.reason}.`)
        return setRules(parts, request, rules as Rule[])
      },
    }),

    operation({
      call: 'DELETE /redaction',
      id: 'deleteRedaction',
      scope: 'admin',
      summary: "Remove the project's redaction rules",
      description: 'From then on, data is stored as it was sent. Masked keys still read masks.',
      returns: 'There are none.',
      data: Type.Ref('Redaction'),
      json: (request) => setRules(parts, request, null),
    }),
  )

export const redactionRoutes = (parts: Parts): ModuleRoutes => ({
  project: ownRoutes(parts),
  schemas: [Redaction],
})
