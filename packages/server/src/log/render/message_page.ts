import type { Cursors } from '@annals/kits/http/answer/page_answer.js'
import { writePosition } from '@annals/kits/lists/log_position.js'
import { jsonList } from '@annals/kits/lists/resource_json.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { PublicUrls } from '../../blobs/public_urls.js'
import type { LogReader } from '../read/read_log.js'
import { joined, type MessagePageRequest, MessageWalk } from './message_walk.js'
import { PageRenderer } from './page_renderer.js'

/**
 * A page of messages as JSON, in chunks. `items`, `ids` and `metas` are parallel lists, so a long page is walked once
 * for each, and only counts are kept between walks. The walks agree because entries never move or disappear.
 */
export async function* messagePage(
  { log, thread }: { log: LogReader; thread: WorkThread },
  request: MessagePageRequest,
  cursors: Cursors,
  urls?: PublicUrls,
): AsyncGenerator<string> {
  const renderer = new PageRenderer(thread, request.project_id, request.format)
  const page = new MessageWalk(log, request, renderer)
  await page.plan(thread)
  const list = request.fit && (await page.fitted(thread, request.fit))
  if (list) {
    yield* jsonList('{"items":[', [list.items], `],"ids":${JSON.stringify(list.ids)},"metas":[`)
    yield* jsonList('', [list.metas], '')
  } else {
    yield '{"items":['
    try {
      yield* page.items()
    } finally {
      renderer.close()
    }
    yield '],"ids":['
    yield* page.ids()
    yield '],"metas":['
    yield* page.metas()
  }
  const { next_seq, tokens, last_id } = page
  const edit_at = request.editing?.pin_id ?? last_id
  // Both bounds are exclusive: the next page begins with the message that this one left out. Events between belong to
  // this page.
  const seen_seq = next_seq && (request.time_desc ? next_seq + 1 : next_seq - 1)
  const known = request.time_desc || request.with_events ? undefined : page.last
  const next_cursor = seen_seq ? cursors.write(writePosition(known ?? (await log.positionOf(seen_seq)))) : ''
  yield `],"has_more":${next_cursor !== ''},"next_cursor":"${next_cursor}","edit_at_message_id":"${edit_at}","this_time_tokens":${tokens}`
  if (list) yield `,${list.notes}`
  // The consumer of the chunks has noted the blobs of all items by now.
  if (urls) {
    yield ',"public_urls":'
    yield* urls.json()
  }
  if (request.with_events) {
    yield ',"events":['
    yield* joined(page.walk('event', { kind: 'event', ...page.ownBounds() }), ({ json }) => json)
    yield ']'
  }
  yield '}'
}
