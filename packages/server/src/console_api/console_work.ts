import { figuresOfLog, type LogEntry, type LogFigures } from '@annals/messages/session'

export const CONSOLE_WORK = {
  logFigures(json: string): { figures: LogFigures; entries: number } {
    const entries = JSON.parse(json) as Array<LogEntry & { data: unknown }>
    const log = entries.map((entry) => (entry.kind === 'message' ? { ...entry, blob: entry.data } : entry))
    return { figures: figuresOfLog(log), entries: entries.length }
  },
}

type ConsoleWork = typeof CONSOLE_WORK

declare module '../threads/work_thread.js' {
  interface ThreadWork extends ConsoleWork {}
}
