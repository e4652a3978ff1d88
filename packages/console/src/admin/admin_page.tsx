import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useAccounts } from '../access/project_context.tsx'
import { ADMIN, ask } from '../access/service.ts'
import { Link } from '../address/link.tsx'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'
import { NamedForm } from './named_form.tsx'
import { NewSecret } from './new_secret.tsx'
import { ProjectKeys } from './project_keys.tsx'

interface AdminProject {
  id: string
  name: string
  created_at: string
}

/** Projects and their API keys, for a holder of the admin token. */
export function AdminPage() {
  usePageTitle('Keys and projects')
  const { accounts } = useAccounts()
  if (!accounts.is_admin) {
    return (
      <Empty title="Keys and projects need the admin token" is_page>
        <p>
          It is the value of <code>ANNALS_ADMIN_TOKEN</code> on the service’s machine. Without it, use{' '}
          <code>npx annals token</code> there.
        </p>
        <Link className="button is-primary" to="/admin?sign_in=1">
          Enter the admin token
        </Link>
      </Empty>
    )
  }
  return <Projects />
}

function Projects() {
  const queries = useQueryClient()
  const [secret, setSecret] = useState<{ of: string; token: string }>()
  const [erased, setErased] = useState<AdminProject>()
  const projects = useQuery({
    queryKey: ['admin', 'projects'],
    queryFn: ({ signal }) =>
      ask<{ items: AdminProject[] }>('/console/admin/v1/projects', { opens: ADMIN, signal }),
  })
  const refresh = () => queries.invalidateQueries({ queryKey: ['admin'] })
  const create = async (name: string) => {
    const made = await ask<{ project: AdminProject; token: string }>('/console/admin/v1/projects', {
      method: 'POST',
      opens: ADMIN,
      body: { name },
    })
    setSecret({ of: `project ${name}`, token: made.token })
    await refresh()
  }
  if (projects.isPending) return <Loading what="projects" />
  if (projects.isError)
    return <Failure is_page error={projects.error} onRetry={() => void projects.refetch()} />
  return (
    <div className="page">
      <div className="page-head">
        <h1>Keys and projects</h1>
        <NamedForm
          label="New project"
          placeholder="Name of a new project"
          action="Create project"
          onSubmit={create}
        />
      </div>
      {secret && <NewSecret {...secret} onClose={() => setSecret(undefined)} />}
      {projects.data.items.map((project) => (
        <section key={project.id} className="admin-project" aria-label={`Project ${project.name}`}>
          <header>
            <h2>{project.name}</h2>
            <span className="hint mono">{project.id}</span>
            <span className="hint">
              created <Timestamp at={project.created_at} />
            </span>
            <button
              type="button"
              className="button is-small is-danger-quiet"
              onClick={() => setErased(project)}
            >
              Erase project…
            </button>
          </header>
          <ProjectKeys project={project} onSecret={setSecret} />
        </section>
      ))}
      <ConfirmDialog
        title={`Erase project ${erased?.name}`}
        is_open={erased !== undefined}
        phrase={erased?.name ?? ''}
        action="Erase the project"
        onClose={() => setErased(undefined)}
        run={async () => {
          await ask(`/console/admin/v1/projects/${erased!.id}`, { method: 'DELETE', opens: ADMIN })
          await refresh()
        }}
      >
        <p>
          Its keys stop working within 5 seconds; then all of its sessions, users and learning spaces go for
          good.
        </p>
      </ConfirmDialog>
    </div>
  )
}
