import type { Annals, NewEntry, NewLearningSpace, NewSession } from '@annals/client'

/** The demo that ships with Annals. Its sessions and entries have ids, so loading it twice stores it once. */
interface Demo {
  sessions: Array<{ session: NewSession; entries: NewEntry[] }>
  learning_spaces: Array<NewLearningSpace & { learns_from: string[] }>
}

/** Stores the demo sessions through the API. */
export async function loadDemo(
  annals: Annals,
  onProgress: (done: number, all: number) => void,
): Promise<void> {
  const response = await fetch('/console/demo.json')
  if (!response.ok)
    throw new Error('This installation of Annals does not include the demo. Try: npx annals demo')
  const { sessions, learning_spaces } = (await response.json()) as Demo
  for (const [index, { session, entries }] of sessions.entries()) {
    onProgress(index, sessions.length)
    const { id } = await annals.sessions.create(session)
    await annals.sessions.appendBatch(id, entries)
  }
  for (const { learns_from, ...space } of learning_spaces) {
    const { id } = await annals.learningSpaces.create(space)
    for (const session_id of learns_from) await annals.learningSpaces.learn(id, session_id)
  }
}
