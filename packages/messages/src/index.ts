export {
  type BlobReference,
  blobReferences,
  bytePlaces,
  lacksBytes,
  markBlobs,
  mayReferToBlobs,
  showReferences,
} from './attachments.js'
export {
  type Base64Lines,
  breakOf,
  JSON_BREAKS,
  LINE_WIDTH_MIN,
  lineBreaker,
  linesOf,
} from './base64_lines.js'
export type { MessagePlace } from './blob_reading.js'
export { InvalidMessage } from './blob_reading.js'
export { type CountedContent, countedContent } from './counted_content.js'
export { MESSAGE_FORMATS, type MessageFormat } from './formats.js'
export { type FactsOf, type MediaFacts, mediaFacts, typeOfBytes } from './media_facts.js'
export {
  type AcontextMessage,
  type AnthropicMessage,
  ConversationRenderer,
  type GeminiMessage,
  type OpenAiMessage,
  type ProviderMessage,
  type ResponsesItem,
  readMessage,
  type StoredMessage,
} from './message_format.js'
export type { NeutralMessage, Part, Role } from './parts.js'
export { isAsStored, parseStored, StoredRenderer, type StoredText } from './stored_renderer.js'
export { namingBlobs } from './text_bytes.js'
export { estimateTokens } from './token_estimate.js'
