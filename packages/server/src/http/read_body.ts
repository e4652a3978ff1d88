import { AnnalsError } from '../errors.js'
import { isRefusal, readJson } from '../json/read_json.js'
import type { AppServer } from './app_parts.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it was sent, checked to be JSON that can be stored; `{}` where there was none. */
    bodyText: string
    /** Bytes of the body as PostgreSQL will write it, its insignificant space aside. */
    bodyBytes: number
  }
}

/** Reads JSON bodies: the value for checking, the text for storing. Everything else is 415. */
export function readBodies(app: AppServer): void {
  app.decorateRequest('bodyText', '{}')
  app.decorateRequest('bodyBytes', 2)
  app.removeAllContentTypeParsers()
  // No operation of these methods has a body; one that is sent means nothing (RFC 9110, 9.3.5) and is not read.
  app.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  // No body counts as an empty object. It is said here, as the framework shows a validator null for both.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.body === undefined && request.routeOptions.schema?.body) request.body = {}
    done()
  })
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const encoding = request.headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity') {
      return done(
        new AnnalsError(
          'unsupported_media_type',
          `Content-Encoding ${encoding} is not supported. Send the body uncompressed.`,
        ),
      )
    }
    const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1]
    // The name has a dash (RFC 3629), and is often spelt without.
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      return done(
        new AnnalsError(
          'unsupported_media_type',
          `The charset ${charset} is not supported. Send JSON as UTF-8.`,
        ),
      )
    }
    if (body.length === 0) return done(null, undefined)
    const json = readJson(body as Buffer)
    if (!isRefusal(json)) {
      request.bodyText = json.text
      request.bodyBytes = body.length + json.expansion
      return done(null, json.value)
    }
    if (json.refused === 'not_json')
      return done(new AnnalsError('invalid_json', `The body is not JSON: ${json.reason}.`))
    done(
      new AnnalsError(
        'invalid_request',
        `The body cannot be stored: at ${json.pointer || '/'} ${json.reason}.`,
      ),
    )
  })
}

/**
 * Lets go of the parsed body, once all that is needed of it is taken. What waits for its commit is copied by each
 * collection of garbage meanwhile, and the tree of a large body would be the most of it.
 */
export function releaseBody(request: { body: unknown }): void {
  request.body = undefined
}
