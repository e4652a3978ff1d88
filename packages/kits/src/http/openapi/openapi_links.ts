/** Links of an answer: the parameters of a path that its members fill. Tools follow them. */
export type OperationLinks = Readonly<Record<string, string>>

export const DATA_ID = '$response.body#/data/id'
