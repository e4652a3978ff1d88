export const SCORE = {
  k1: 0.9,
  b: 0.25,
  exact: 1.2,
  beside: [0.35, 0.2, 0.1],
  local: 0.5,
  label: { tool: 0.8, event: 0.8 },
  session: [1, 0.3],
  own: [0],
  together: 0.5,
  together_k: 1,
}
