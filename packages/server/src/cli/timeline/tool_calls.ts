/** A call of a tool, from a message's part or from an event, and its result where that is known. */
export interface ToolCall {
  /** 1 for the first call of the session; undefined where the log was not read from its beginning. */
  number: number | undefined
  id: string | undefined
  name: string
  /** What the model wrote: JSON as a rule. */
  arguments: string
  seq: number
  at: number
  result?: ToolResult
}

export interface ToolResult {
  text: string
  is_error: boolean
  seq: number
  at: number
}

/** A result that says that it is an error, or begins like one: formats without a mark for it put it into the text. */
export function looksLikeError(text: string): boolean {
  return /^\s*(error\b|traceback\b|\{\s*"error"\s*:\s*(?!null|false|""))/i.test(text)
}

/** Numbers calls, and finds the call that a result belongs to. */
export class ToolCalls {
  private count = 0
  private readonly open: ToolCall[] = []

  /** @param is_whole whether the log is read from its beginning, so that numbers mean something */
  constructor(private readonly is_whole: boolean) {}

  begin(call: Omit<ToolCall, 'number'>): ToolCall {
    this.count += 1
    const numbered = { ...call, number: this.is_whole ? this.count : undefined }
    this.open.push(numbered)
    return numbered
  }

  /** The call that the result answers: by its id, else the oldest open one of its name, else the oldest at all. */
  end(id: string | undefined, name: string | undefined, result: ToolResult): ToolCall | undefined {
    const index =
      id !== undefined
        ? this.open.findIndex((call) => call.id === id)
        : this.open.findIndex((call) => name === undefined || call.name === name)
    if (index < 0) return undefined
    const [call] = this.open.splice(index, 1)
    call!.result = result
    return call
  }
}
