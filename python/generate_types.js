/**
 * Generates the Python client's types from openapi.json: a TypedDict for each schema, body, answer and query.
 *
 *     node python/generate_types.js
 *
 * A type that is not in NAMES is named after its operation, such as `GetThingData`.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const HERE = new URL('.', import.meta.url)

/** Names for types that are inline in openapi.json, by their place; null: no method needs the type. */
const NAMES = {
  'createSession.body': 'NewSession',
  'addEvent.body': 'NewEvent',
  'addMessage.body': 'NewMessage',
  'appendEntries.body': null,
  'appendEntries.body.entries': 'NewEntry',
  'appendEntries.body.entries.event': 'NewEventEntry',
  'appendEntries.body.entries.message': 'NewMessageEntry',
  'appendToSessions.body': null,
  'appendToSessions.body.appends': 'SessionAppend',
  'appendToSessions.body.appends.entries': 'NewEntry',
  'appendToSessions.body.appends.entries.event': 'NewEventEntry',
  'appendToSessions.body.appends.entries.message': 'NewMessageEntry',
  'appendToSessions.data': 'AppendedToSessions',
  'createKey.body': 'NewKey',
  'createKey.data': 'CreatedKey',
  'listKeys.data': null,
  'issueToken.body': 'NewToken',
  'issueToken.body.for': 'TokenSessions',
  'createWebhook.body': 'NewWebhook',
  'createWebhook.data': 'CreatedWebhook',
  'listWebhooks.data': null,
  'createLearningSpace.body': 'NewLearningSpace',
  'replaceConfigs.body': null,
  'mergeConfigs.body': null,
  'mergeMessageMeta.body': null,
  'mergeLearningSpaceMeta.body': null,
  'copySession.body': 'Fork',
  'copySession.data': 'CopiedSession',
  'updateSession.body': null,
  'flushSession.body': null,
  'flushSession.data': null,
  'getObservingStatus.data': null,
  'listTasks.data': null,
  'listTasks.query': null,
  'mergeConfigs.data': 'MergedConfigs',
  'appendEntries.data': 'AppendedEntries',
  'mergeMessageMeta.data': 'MergedMeta',
  'getContext.data': 'Context',
  'readLatest.query': 'LatestQuery',
  'retractEntries.body': 'Retraction',
  'retractEntries.body.entries': 'NewEntry',
  'retractEntries.body.entries.event': 'NewEventEntry',
  'retractEntries.body.entries.message': 'NewMessageEntry',
  'retractEntries.data': 'RetractedEntries',
  'compactSession.body': 'NewCompaction',
  'compactSession.body.summary': 'SummaryMessage',
  'countTokens.data': 'TokenCounts',
  'countUserResources.data': 'UserResources',
  'eraseUser.data': 'ErasedUser',
  'listMessages.data': 'MessagePage',
  'listSessions.query': 'SessionsQuery',
  'listEvents.query': 'EventsQuery',
  'listMessages.query': 'MessagesQuery',
  'getContext.query': 'ContextQuery',
  'readTimeline.query': 'TimelineQuery',
  'listLearningSpaces.query': 'LearningSpacesQuery',
  'listUsers.query': 'UsersQuery',
  'learnFromSession.body': null,
  'includeSkill.body': null,
  'listSkills.query': 'SkillsQuery',
  'getSkillFile.query': null,
  'getSkillFile.data': 'SkillFile',
  'getSkillFile.data.content': 'SkillText',
  'addStatement.body': 'NewStatement',
  'changeStatement.body': 'StatementChange',
  'listStatements.query': 'StatementsQuery',
  'getSpaceContext.query': 'SpaceContextQuery',
  'getSpaceContext.data': 'SpaceContext',
  'getSpaceContext.data.items': 'SpaceContextItem',
  'addFeedback.body': 'Feedback',
  'getSpaceHistory.query': 'SpaceHistoryQuery',
  'setSpacePolicy.body': 'NewSpacePolicy',
  'getSpaceUsage.query': null,
  'getSpaceUsage.data': 'SpaceUsage',
  'getSpaceUsage.data.tokens': 'SpaceTokens',
  'getSpaceUsage.data.days': 'SpaceUsageDay',
  'search.query': 'SearchQuery',
  'listTools.query': 'ToolsQuery',
  'getTool.query': 'ToolQuery',
  'search.data': 'Found',
  'inviteMember.body': 'NewMember',
  'changeMember.body': null,
  'createPersonalToken.body': 'NewPersonalToken',
  'createPersonalToken.data': 'CreatedKey',
  'takeLease.body': 'NewLease',
  'renewLease.body': null,
  'releaseLease.query': null,
  'addInput.body': 'NewInput',
  'addInput.body.event': 'NewEventInput',
  'addInput.body.message': 'NewMessageInput',
  'addInput.data': 'AddedInput',
  'readInbox.query': 'InboxQuery',
  'withdrawInput.query': null,
  'claimWork.body': 'WorkQuery',
  'claimWork.data': null,
  'claimWork.data.items': 'ClaimedSession',
  'openRequest.body': 'NewRequest',
  'openRequest.body.call': 'AskedCall',
  'listRequests.query': 'RequestsQuery',
  'resolveRequest.body': 'Resolution',
  'resolveRequests.body': null,
  'resolveRequests.body.resolutions': 'ResolutionOf',
  'resolveRequests.data': null,
  'listRuns.query': 'RunsQuery',
  'listRuns.data': 'RunItem',
}

const PREAMBLE = `\
"""The types of the API's parameters and answers. An answer is a dict, as the API sent it.

Generated from openapi.json by \`npm run openapi\`. Do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from typing_extensions import NotRequired, TypedDict

JsonObject: TypeAlias = dict[str, Any]
"""Any JSON object. A number is an int, a float, or a Decimal if a float would lose digits."""

Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    has_more: bool
    """Whether another page follows."""
    next_cursor: str
    """The cursor of the next page; empty if there is none."""
`

/** Names that Python reserves. */
const KEYWORDS = new Set([
  'as',
  'class',
  'except',
  'for',
  'from',
  'global',
  'import',
  'in',
  'is',
  'not',
  'with',
])

const PAGE_FIELDS = 'has_more items next_cursor'

class Types {
  classes = new Map()
  aliases = new Map()

  constructor(document) {
    this.schemas = document.components.schemas
    for (const [path, item] of Object.entries(document.paths)) {
      if (!path.startsWith('/api/v1/')) continue
      for (const operation of Object.values(item)) this.#addOperation(operation)
    }
  }

  #addOperation({ operationId, requestBody, responses, parameters = [] }) {
    const body = requestBody?.content['application/json']?.schema
    if (body && (body.anyOf || Object.keys(body.properties ?? {}).length > 0))
      this.#typeOf(body, `${operationId}.body`, true)
    const answer = (responses[200] ?? responses[201])?.content['application/json']?.schema
    const data = answer?.properties?.data
    if (data && (data.$ref || data.anyOf || Object.keys(data.properties ?? {}).length > 0))
      this.#typeOf(data, `${operationId}.data`, false)
    const query = parameters.filter((parameter) => parameter.in === 'query')
    if (query.length === 0) return
    const properties = query.map(({ name, description, schema, content }) => [
      name,
      { anyOf: [schema ?? content['application/json'].schema, { type: 'null' }], description },
    ])
    // The client does not send None.
    this.#typeOf({ type: 'object', properties: Object.fromEntries(properties) }, `${operationId}.query`, true)
  }

  /** The Python type of a schema. Adds a class for each inline object. */
  #typeOf(schema, place, isInput) {
    if (schema.$ref) return this.#component(schema.$ref.split('/').at(-1))
    if (schema.anyOf) return this.#union(schema, place, isInput)
    if (schema.enum && schema.type === 'string') return `Literal[${schema.enum.map(quoted).join(', ')}]`
    if (schema.type === 'array') {
      const item = this.#typeOf(schema.items, place, isInput)
      return `list[${item}]`
    }
    if (schema.type === 'object') return this.#object(schema, place, isInput)
    if (schema.type === 'number') return schema.enum?.every(Number.isInteger) ? 'int' : 'float'
    return { string: 'str', integer: 'int', boolean: 'bool', null: 'None' }[schema.type] ?? 'Any'
  }

  #component(name) {
    const schema = this.schemas[name]
    if (schema.anyOf) {
      if (!this.aliases.has(name)) this.#union(schema, name, false, name)
    } else if (!this.classes.has(name)) {
      this.#addClass(name, schema, name, false)
    }
    return name
  }

  #union({ anyOf, description }, place, isInput, name = nameAt(place)) {
    const members = anyOf.map((member) => {
      const kind = member.properties?.kind?.enum?.[0]
      return this.#typeOf(member, kind ? `${place}.${kind}` : place, isInput)
    })
    const literals = members.flatMap((member) => /^Literal\[(.*)\]$/.exec(member)?.[1] ?? [])
    const others = members.filter((member) => !member.startsWith('Literal['))
    const unique = [...new Set(literals.length > 0 ? [`Literal[${literals.join(', ')}]`, ...others] : others)]
    const type = unique.join(' | ')
    // Only a union of classes gets a name.
    if (anyOf.filter((member) => member.$ref || member.properties?.kind).length < 2) return type
    this.aliases.set(name, { type, description })
    return name
  }

  #object(schema, place, isInput) {
    const { properties = {}, additionalProperties } = schema
    const names = Object.keys(properties)
    if (names.length === 0 || additionalProperties === true)
      return isInput ? 'Mapping[str, object]' : 'JsonObject'
    if (names.sort().join(' ') === PAGE_FIELDS)
      return `Page[${this.#typeOf(properties.items.items, place, isInput)}]`
    const name = nameAt(place)
    this.#addClass(name, schema, place, isInput)
    return name ?? 'object'
  }

  #addClass(name, { properties, required = [], description }, place, isInput) {
    if (name) this.classes.set(name, undefined)
    const fields = Object.entries(properties).map(([field, schema]) => {
      const type = this.#typeOf(schema, `${place}.${field}`, isInput)
      const text = required.includes(field) ? type : `NotRequired[${type}]`
      // The client removes the underscore before it sends the name.
      const attribute = isInput && KEYWORDS.has(field) ? `${field}_` : field
      return `    ${attribute}: ${text}\n${docstring(schema.description)}`
    })
    if (name)
      this.classes.set(name, `class ${name}(TypedDict):\n${docstring(description, '\n')}${fields.join('')}`)
  }

  text() {
    const classes = [...this.classes].sort(byName).map(([, text]) => `\n\n${text}`)
    const aliases = [...this.aliases].sort(byName).map(([name, { type, description }]) => {
      const wrapped = `${name}: TypeAlias = ${type}`
      return `${wrapped}\n${docstring(description).replace(/^ +/, '')}`
    })
    return `${PREAMBLE}${classes.join('')}\n\n${aliases.join('')}`
  }
}

/** A nested type is named after its parent and its field. */
function nameAt(place) {
  if (place in NAMES) return NAMES[place]
  const [, parent, last] = /^(?:(.*)\.)?(.*)$/.exec(place)
  const words = last.split('_').map((word) => word[0].toUpperCase() + word.slice(1))
  return `${parent ? nameAt(parent) : ''}${words.join('')}`
}

function docstring(text, after = '') {
  if (!text) return ''
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', "'")
  return `    """${escaped}"""\n${after}`
}

function quoted(text) {
  return JSON.stringify(text)
}

function byName([one], [other]) {
  return one < other ? -1 : 1
}

const types = new Types(JSON.parse(readFileSync(new URL('../openapi.json', HERE), 'utf8')))
writeFileSync(new URL('src/annals/types.py', HERE), types.text())
