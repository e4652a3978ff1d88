export { fitName } from './fit_ids.js'
export {
  type FitMessage,
  type FitOptions,
  FitToSend,
  type Fitted,
  type Reasoning,
} from './fit_to_send.js'
export { type Added, NO_RESULT, type Omitted } from './pieces.js'
