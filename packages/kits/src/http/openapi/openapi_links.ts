/** Where an answer leads: the parameters of a path that it fills, and with what. Tools walk along these. */
export type OperationLinks = Readonly<Record<string, string>>

export const DATA_ID = '$response.body#/data/id'
