export { endOfString } from './end_of_string.js'
export { ExactNumber, parseAnswer, parseJson, writeJson } from './exact_json.js'
export { JSON_DEPTH_MAX, nestsTooDeep } from './nesting.js'
