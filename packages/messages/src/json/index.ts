export { canonicalJson, ExactNumber, exactly, parseAnswer, parseJson, writeJson } from './exact_json.js'
export {
  elementSlices,
  endOfString,
  isJsonObject,
  isRefusal,
  JSON_DEPTH_MAX,
  type JsonRefusal,
  type JsonText,
  memberObjects,
  memberSlice,
  memberTexts,
  nestsTooDeep,
  readStorable,
  type Slice,
} from './json_text.js'
export { DECEIVING, visibleJson, withoutEscapes } from './visible.js'
