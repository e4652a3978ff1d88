export { type AnnalsMcpOptions, annalsMcp, mayWrite } from './server.js'
export { type McpCaller, mcpOverHttp } from './streamable_http.js'
