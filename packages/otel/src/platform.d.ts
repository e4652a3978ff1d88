/** What Node and browsers have in common, of which the language's own types say nothing. */
declare function btoa(text: string): string
declare class TextDecoder {
  constructor(label: string, options: { fatal: boolean })
  decode(bytes: Uint8Array): string
}
