/** One row of a list: the resource as JSON, and where it stands in the list's order. */
export interface Listed {
  json: string
  created_at: string
  id: string
}
