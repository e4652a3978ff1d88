/** One row of a list: the resource as JSON, and its position in the list's order. */
export interface Listed {
  json: string
  created_at: string
  id: string
}
