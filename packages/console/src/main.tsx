import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { flushSync } from 'react-dom'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { applyTheme, readTheme } from './shell/theme.ts'
import './theme.css'
import './styles/controls.css'
import './styles/dialogs.css'
import './styles/shell.css'
import './styles/filter.css'
import './styles/lists.css'
import './styles/search.css'
import './styles/session.css'
import './styles/outline.css'
import './styles/entry.css'
import './styles/message.css'
import './styles/code.css'
import './styles/json.css'
import './styles/compare.css'
import './styles/pages.css'
import './styles/activity.css'

applyTheme(readTheme())

const queries = new QueryClient({
  // The client already retries where that is safe.
  defaultOptions: { queries: { retry: false, refetchOnWindowFocus: false, staleTime: 10_000 } },
})

// Synchronously: the key field has the focus before the page counts as loaded, so early typing or pasting loses no
// character.
flushSync(() =>
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  ),
)
