import { forgetBody } from '@annals/kits/http/request/read_body.js'
import { serveWork } from '@annals/kits/threads/serve_work.js'
import { THREAD_WORK } from './thread_work.js'

serveWork((_call, name) => {
  if (name !== 'takeBody' && name !== 'takeForm') forgetBody()
  return THREAD_WORK
})
