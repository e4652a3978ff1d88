/** What nodes of a tree of messages say of their places. */
export interface TreeNode {
  id: string
  parent: string | undefined
}

/** The branch that is current, from its root, and the others, each from the node at which it leaves the current one. */
export interface Branches {
  current: string[]
  others: { leaf: string; at: string | undefined; nodes: string[] }[]
}

/** The branches of a tree: one for each leaf. Nodes that a circle has are left out, and so are those that no root has. */
export function branchesOf(nodes: ReadonlyMap<string, TreeNode>, current: string | undefined): Branches {
  const parents = new Set<string>()
  for (const { parent } of nodes.values()) if (parent !== undefined) parents.add(parent)
  const leaves = [...nodes.keys()].filter((id) => !parents.has(id))
  const main = pathTo(nodes, current !== undefined && nodes.has(current) ? current : leaves.at(-1))
  const is_main = new Set(main)
  const others = leaves
    .filter((leaf) => !is_main.has(leaf))
    .map((leaf) => {
      const path = pathTo(nodes, leaf)
      const from = path.findIndex((id) => !is_main.has(id))
      return { leaf, at: path[from - 1], nodes: path.slice(from) }
    })
  return { current: main, others }
}

function pathTo(nodes: ReadonlyMap<string, TreeNode>, leaf: string | undefined): string[] {
  const path: string[] = []
  const seen = new Set<string>()
  for (let at = leaf; at !== undefined && nodes.has(at) && !seen.has(at); at = nodes.get(at)!.parent) {
    seen.add(at)
    path.push(at)
  }
  return path.reverse()
}
