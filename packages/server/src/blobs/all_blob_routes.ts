import type { ModuleRoutes } from '../http/module.js'
import { assetUrlRoute, blobRoutes } from './blob_routes.js'
import { Blob } from './blob_schema.js'

export const BLOB_ROUTES: ModuleRoutes = {
  project: blobRoutes,
  open: assetUrlRoute,
  schemas: [Blob],
  byte_bodies: ['putBlob'],
}
