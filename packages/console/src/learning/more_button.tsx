/** Reads the next page of a list. */
export function MoreButton({
  list: { hasNextPage, isFetchingNextPage, fetchNextPage },
}: {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> }
}) {
  if (!hasNextPage) return null
  return (
    <button
      type="button"
      className="button is-small"
      disabled={isFetchingNextPage}
      onClick={() => void fetchNextPage()}
    >
      {isFetchingNextPage ? 'Loading…' : 'Show more'}
    </button>
  )
}
