export { ExactNumber, exactly, parseAnswer, parseJson, writeJson } from './exact_json.js'
export {
  elementSlices,
  endOfString,
  JSON_DEPTH_MAX,
  memberObjects,
  memberSlice,
  memberTexts,
  nestsTooDeep,
  type Slice,
} from './slices.js'
export { isJsonObject, isRefusal, type JsonRefusal, type JsonText, readStorable } from './storable_json.js'
export { DECEIVING, visibleJson, withoutEscapes } from './visible.js'
