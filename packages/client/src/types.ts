import type { components, paths } from './openapi.gen.js'

type Schemas = components['schemas']

export type Session = Schemas['Session']
export type Proof = Schemas['Proof']
export type SessionEvent = Schemas['SessionEvent']
export type Message = Schemas['Message']
/** An entry of a session's log: a message or an event, by its `kind`. */
export type TimelineItem = Schemas['TimelineItem']
export type TimelineMessage = Schemas['TimelineMessage']
export type TimelineEvent = Schemas['TimelineEvent']
export type LearningSpace = Schemas['LearningSpace']
export type User = Schemas['User']
/** Bytes that the project has. */
export type Blob = Schemas['Blob']
/** A skill with the index of its files. */
export type Skill = Schemas['Skill']
export type ListedSkill = Schemas['ListedSkill']
export type SpaceSkill = Schemas['SpaceSkill']
/** An entry that a search found. */
export type FoundEntry = Schemas['FoundEntry']
/** A session that answers a question, with its best entries. */
export type FoundSession = Schemas['FoundSession']
/** An API key, as it is told of itself. */
export type OwnKey = Schemas['OwnKey']
/** A project's usage; `max` is null if there is no quota. */
export type Usage = Schemas['Usage']
export type Webhook = Schemas['Webhook']
/** A lease of a session. Writes carry its `fence`. */
export type Lease = Schemas['Lease']
/** An entry to be, in the inbox of a session. */
export type InboxInput = Schemas['InboxInput']
/** A request for an approval or an answer. */
export type RunnerRequest = Schemas['RunnerRequest']
/** The state of a session's run: the holder of its lease, and pending input and requests. */
export type Run = Schemas['Run']
/** The calls of a tool, counted. */
export type Tool = Schemas['Tool']
export type ToolPage = Schemas['ToolPage']
/** The same, with its failures by what their messages have in common. */
export type ToolFailures = Schemas['ToolFailures']

type Api = '/api/v1'
type Configs = paths[`${Api}/session/{session_id}/configs`]
type Copy = paths[`${Api}/session/{session_id}/copy`]
type Events = paths[`${Api}/session/{session_id}/events`]
type Messages = paths[`${Api}/session/{session_id}/messages`]
type Entries = paths[`${Api}/session/{session_id}/entries`]
type EntriesOfSessions = paths[`${Api}/entries`]
type Timeline = paths[`${Api}/session/{session_id}/timeline`]
type LatestOf = paths[`${Api}/session/{session_id}/latest`]
type Retractions = paths[`${Api}/session/{session_id}/retractions`]
type Compactions = paths[`${Api}/session/{session_id}/compactions`]
type MessageMetaOf = paths[`${Api}/session/{session_id}/messages/{message_id}/meta`]
type ContextOf = paths[`${Api}/session/{session_id}/context`]
type ExportOf = paths[`${Api}/session/{session_id}/export`]
type TokenCountsOf = paths[`${Api}/session/{session_id}/token_counts`]
type SearchOf = paths[`${Api}/search`]
type ToolsOf = paths[`${Api}/tools`]
type ToolOf = paths[`${Api}/tools/{name}`]
type Sessions = paths[`${Api}/session`]
type OneSession = paths[`${Api}/session/{session_id}`]
type LearningSpaces = paths[`${Api}/learning_spaces`]
type SpacePath = `${Api}/learning_spaces/{learning_space_id}`
type Learn = paths[`${SpacePath}/learn`]
type PolicyOf = paths[`${SpacePath}/policy`]
type Statements = paths[`${SpacePath}/statements`]
type OneStatement = paths[`${Api}/statements/{statement_id}`]
type SpaceContextOf = paths[`${SpacePath}/context`]
type FeedbackOn = paths[`${SpacePath}/feedback`]
type HistoryOf = paths[`${SpacePath}/history`]
type SpaceUsageOf = paths[`${SpacePath}/usage`]
type SkillsOf = paths[`${Api}/agent_skills`]
type SkillFileOf = paths[`${Api}/agent_skills/{skill_id}/file`]
type MembersOf = paths[`${Api}/members`]
type PersonalTokensOf = paths[`${Api}/personal_tokens`]
type KeysOf = paths[`${Api}/keys`]
type RedactionOf = paths[`${Api}/redaction`]
type TokensOf = paths[`${Api}/tokens`]
type WebhooksOf = paths[`${Api}/webhooks`]
type LeaseOf = paths[`${Api}/session/{session_id}/lease`]
type InboxOf = paths[`${Api}/session/{session_id}/inbox`]
type RequestsOf = paths[`${Api}/session/{session_id}/requests`]
type ResolveOf = paths[`${Api}/requests/{request_id}/resolve`]
type RequestList = paths[`${Api}/requests`]
type RunList = paths[`${Api}/runs`]
type Work = paths[`${Api}/work/claim`]
type Users = paths[`${Api}/user/ls`]
type UserResourcesOf = paths[`${Api}/user/{identifier}/resources`]
type OneUser = paths[`${Api}/user/{identifier}`]

export type NewLease = Input<BodyOf<LeaseOf['post']>>
export type NewInput = Input<BodyOf<InboxOf['post']>>
export type AddedInput = DataOf<InboxOf['post']>
export type InboxQuery = QueryOf<InboxOf['get']>
export type WorkQuery = Omit<Input<BodyOf<Work['post']>>, 'ttl_ms'> & { ttl_ms?: number | undefined }
/** A session that was claimed: its lease, and its due input. */
export type Claimed = DataOf<Work['post']>['items'][number]
export type NewRequest = Input<BodyOf<RequestsOf['post']>>
export type Resolution = Input<BodyOf<ResolveOf['post']>>
export type RequestsQuery = QueryOf<RequestList['get']>
export type RunsQuery = WithFilter<QueryOf<RunList['get']>, 'filter_by_configs'>
export type RunItem = DataOf<RunList['get']>['items'][number]
/** A change of a run, at a place. */
export type RunFrame = { place: number } & (
  | { event: 'input'; data: InboxInput }
  | { event: 'request'; data: RunnerRequest }
  | {
      event: 'lease'
      data: { state: 'taken' | 'released' | 'expired'; fence: number; owner?: string; expires_at?: string }
    }
)

export type JsonObject = Session['configs']

export type NewSession = Input<BodyOf<Sessions['post']>>
export type SessionChange = BodyOf<OneSession['patch']>
export type NewEvent = Input<BodyOf<Events['post']>>
export type NewMessage = Input<BodyOf<Messages['post']>>
/** One entry of a batch: a message or an event, by its `kind`. */
export type NewEntry = Input<NonNullable<BodyOf<Entries['post']>['entries']>[number]>
/** An append to one of several sessions. */
export type SessionAppend = Omit<Input<BodyOf<EntriesOfSessions['post']>['appends'][number]>, 'entries'> & {
  entries?: NewEntry[] | undefined
}
/** Which entries to retract: exactly one of `ids`, `after_seq` and `last`; and what to append in their place. */
export type Retraction = Omit<Input<BodyOf<Retractions['post']>>, 'entries'> & {
  entries?: NewEntry[] | undefined
}
/** A summary that replaces the entries up to `to_seq` in contexts. */
export type NewCompaction = Input<BodyOf<Compactions['post']>>
export type NewLearningSpace = Input<BodyOf<LearningSpaces['post']>>

/** Options of a fork; by default, it has the whole log, the user and the configs of its original. */
export type Fork = Input<BodyOf<Copy['post']>>
export type Key = Schemas['Token']
export type NewKey = Input<BodyOf<KeysOf['post']>>
export type Member = Schemas['Member']
export type NewMember = Input<BodyOf<MembersOf['post']>>
export type NewPersonalToken = Input<BodyOf<PersonalTokensOf['post']>>
export type CreatedKey = DataOf<KeysOf['post']>
export type Redaction = Schemas['Redaction']
/** A rule of redaction. */
export type RedactionRule = NonNullable<Input<BodyOf<RedactionOf['put']>>['rules']>[number]
/** Which sessions a token reaches, what it allows there, and for how long. */
export type NewToken = Input<BodyOf<TokensOf['post']>>
export type IssuedToken = Schemas['IssuedToken']
export type NewWebhook = Input<BodyOf<WebhooksOf['post']>>
export type CreatedWebhook = DataOf<WebhooksOf['post']>
export type CopiedSession = DataOf<Copy['post']>
export type MergedConfigs = DataOf<Configs['patch']>
export type AppendedEntries = DataOf<Entries['post']>
export type AppendedToSessions = DataOf<EntriesOfSessions['post']>
export type RetractedEntries = DataOf<Retractions['post']>
export type MergedMeta = DataOf<MessageMetaOf['patch']>
export type TokenCounts = DataOf<TokenCountsOf['get']>
export type UserResources = DataOf<UserResourcesOf['get']>
export type ErasedUser = DataOf<OneUser['delete']>

export type SessionsQuery = WithFilter<QueryOf<Sessions['get']>, 'filter_by_configs'>
export type AppendToSessionsQuery = QueryOf<EntriesOfSessions['post']>
export type SearchQuery = Omit<
  WithFilter<QueryOf<SearchOf['get']>, 'filter_by_configs'>,
  'q' | 'mode' | 'group'
>
export type RecallQuery = Omit<SearchQuery, 'order' | 'cursor' | 'noise'>
/** Which calls of tools are counted. */
export type ToolsQuery = WithFilter<QueryOf<ToolsOf['get']>, 'filter_by_configs'>
export type ToolQuery = WithFilter<QueryOf<ToolOf['get']>, 'filter_by_configs'>
export type EventsQuery = QueryOf<Events['get']>
export type MessagesQuery = QueryOf<Messages['get']>
export type ContextQuery = QueryOf<ContextOf['get']>
/** The format of a session's export. */
export type ExportQuery = QueryOf<ExportOf['get']>
export type LatestQuery = QueryOf<LatestOf['get']>
export type TimelineQuery = QueryOf<Timeline['get']>
export type LearningSpacesQuery = WithFilter<QueryOf<LearningSpaces['get']>, 'filter_by_meta'>
export type SkillsQuery = QueryOf<SkillsOf['get']>
export type SkillFile = DataOf<SkillFileOf['get']>
export type SpacePolicy = Input<BodyOf<PolicyOf['put']>>
export type SpaceSession = DataOf<Learn['post']>
export type SpaceUsage = DataOf<SpaceUsageOf['get']>
export type Statement = DataOf<OneStatement['patch']>
export type NewStatement = Input<BodyOf<Statements['post']>>
/** A person's change of a statement: `state: 'active'` approves, `'retired'` rejects. */
export type StatementChange = Input<BodyOf<OneStatement['patch']>>
export type StatementsQuery = QueryOf<Statements['get']>
export type SpaceContext = DataOf<SpaceContextOf['get']>
export type SpaceContextQuery = QueryOf<SpaceContextOf['get']>
export type Feedback = Input<BodyOf<FeedbackOn['post']>>
export type SkillVersion = DataOf<HistoryOf['get']>['items'][number]

export type UsersQuery = QueryOf<Users['get']>

/** A page of a search, and how far the index is. */
export type FoundPage = Schemas['FoundPage']
/** The answer to a question. */
export type FoundSessions = Schemas['FoundSessions']

/** A page of messages; `items`, `ids` and `metas` are parallel. */
export type MessagePage<Item = JsonObject> = Omit<DataOf<Messages['get']>, 'items'> & { items: Item[] }

/** The messages to send to a model next; `items` and `ids` are parallel. */
export type Context<Item = JsonObject> = Omit<DataOf<ContextOf['get']>, 'items'> & { items: Item[] }

type Json<Answer> = Answer extends { content: { 'application/json': infer Content } } ? Content : never

/** The body of an operation. */
type BodyOf<Operation> = Operation extends { requestBody?: infer Body } ? Json<Body> : never

/**
 * What a caller may pass for it: any object where the API accepts any JSON object, because an interface, such as a
 * provider's own message type, has no index signature; and undefined for an optional field.
 */
type Input<Body> = Body extends unknown
  ? {
      [Name in keyof Body]:
        | (JsonObject extends Body[Name] ? Exclude<Body[Name], JsonObject> | object : Body[Name])
        | (object extends Pick<Body, Name> ? undefined : never)
    }
  : never

/** The `data` of an operation's successful answer. */
type DataOf<Operation> = Operation extends { responses: infer Answers }
  ? Json<Answers[keyof Answers & (200 | 201)]> extends { data: infer Data }
    ? Data
    : never
  : never

/** The API's query parameters. Undefined ones are not sent. */
type QueryOf<Operation> = Operation extends { parameters: { query?: infer Query } }
  ? { [Name in keyof NonNullable<Query>]: NonNullable<Query>[Name] | undefined }
  : never

/** The API takes a filter as JSON in the query string; here it is an object. */
type WithFilter<Query, Name extends string> = Omit<Query, Name> & { [N in Name]?: object | undefined }
