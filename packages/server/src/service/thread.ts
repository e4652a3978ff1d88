import { serveWork } from '@annals/kits/threads/serve_work.js'
import { THREAD_WORK } from './thread_work.js'

serveWork(() => THREAD_WORK)
