import { Dialog } from '../parts/dialog.tsx'

const GROUPS: Array<{ title: string; keys: Array<[string, string]> }> = [
  {
    title: 'Everywhere',
    keys: [
      ['g s', 'Sessions'],
      ['g r', 'Runs and requests'],
      ['g u', 'Users'],
      ['g l', 'Learning spaces'],
      ['g p', 'People'],
      ['g w', 'Webhooks'],
      ['g a', 'Activity'],
      ['g k', 'Keys and projects'],
      ['/', 'Search all sessions'],
      ['s', 'Go to the filter or search field of the page'],
      ['?', 'This help'],
      ['Esc', 'Close'],
    ],
  },
  {
    title: 'In a list',
    keys: [
      ['j  k', 'Next and previous row'],
      ['Enter', 'Open the row'],
    ],
  },
  {
    title: 'In the queue of requests',
    keys: [
      ['j  k', 'Next and previous request'],
      ['a', 'Approve it'],
      ['d', 'Deny it'],
      ['1  9', 'Answer with an option'],
      ['e', 'Type an answer'],
      ['o', 'Open its entry'],
    ],
  },
  {
    title: 'In a learning space',
    keys: [
      ['j  k', 'Next and previous statement'],
      ['a', 'Approve it'],
      ['e', 'Edit it; Ctrl Enter saves, Esc cancels'],
      ['r', 'Reject or retire it'],
      ['x', 'Choose it, to decide several at once'],
      ['o', 'Open the first entry that it cites'],
    ],
  },
  {
    title: 'In a session',
    keys: [
      ['j  k', 'Next and previous entry'],
      ['t  T', 'Next and previous tool call'],
      ['f  F', 'Next and previous failed call'],
      ['p  P', 'Next and previous pause or call of 5 s or more'],
      ['n  N', 'Next and previous search match'],
      ['Home', 'First entry'],
      ['End', 'Latest entry, and follow'],
      ['c', 'Copy the entry as JSON'],
    ],
  },
]

/** The keyboard shortcuts. */
export function ShortcutHelp({ is_open, onClose }: { is_open: boolean; onClose: () => void }) {
  return (
    <Dialog title="Keyboard" is_open={is_open} onClose={onClose}>
      <div className="keys">
        {GROUPS.map(({ title, keys }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {keys.map(([key, meaning]) => (
                <div key={key}>
                  <dt>
                    {key.split(/\s+/).map((one) => (
                      <kbd key={one}>{one}</kbd>
                    ))}
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}
