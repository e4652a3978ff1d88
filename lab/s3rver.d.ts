declare module '@20minutes/s3rver' {
  export default class S3rver {
    constructor(options: Record<string, unknown>)
    run(): Promise<unknown>
    close(): Promise<void>
    /** Where objects are kept: the content of one goes to a file. */
    store: { putContent(path: string, content: unknown): Promise<unknown> }
  }
}
