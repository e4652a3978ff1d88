/**
 * The conventions by which instrumented programs say what a span is about: one table each, of the names of attributes.
 * Where several name the same, the first that a span has counts; tables apply in their order, since a span may
 * follow two of them. All of these change for years to come: a new name is a line here.
 */
export interface Dialect {
  readonly name: string
  /** An attribute without which a span does not follow it, as it has names that others use for something else. */
  readonly when?: string
  /** What kind of work a span is: by the value of an attribute, or by a part of the span's name. */
  readonly operation?: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly named?: Readonly<Record<string, Operation>>
  readonly agent?: readonly string[]
  readonly model?: readonly string[]
  readonly provider?: readonly string[]
  /** After a `#`: the member of an attribute that is JSON. */
  readonly usage?: Readonly<Partial<Record<UsageName, readonly string[]>>>
  readonly tool?: Readonly<Partial<Record<ToolField, readonly string[]>>>
  /** Instructions, what a model was sent, and what it answered. */
  readonly system?: readonly Source[]
  readonly input?: readonly Source[]
  readonly output?: readonly Source[]
  /** What a call of a model says once more, whole: left out where its messages were found. */
  readonly repeats?: readonly string[]
}

/** `model`: one call of a model; messages are taken from these, since the spans around them repeat what they say. */
export type Operation = 'model' | 'tool' | 'agent' | 'embeddings' | 'retrieval' | 'step'
export type UsageName =
  | 'input_tokens'
  | 'output_tokens'
  | 'total_tokens'
  | 'cached_tokens'
  | 'cache_write_tokens'
  | 'reasoning_tokens'
export type ToolField = 'name' | 'id' | 'arguments' | 'result'

/**
 * Where messages stand. `json`: an attribute that is a list of messages, one message, or a text, as JSON or as values.
 * `flat`: attributes `<name>.<index>.<field>`. `answer`: the parts of one answer in attributes of their own.
 * `gemini`: a request or an answer of Google's API. `events`: the message events of a span, or of an attribute.
 */
export type Source =
  | { readonly json: string }
  | { readonly flat: string; readonly within?: string }
  | { readonly answer: Readonly<Partial<Record<'text' | 'tool_calls' | 'object' | 'reasoning', string>>> }
  | { readonly gemini: string }
  | { readonly events: 'span' | string }
