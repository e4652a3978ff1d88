import { afterAll } from 'vitest'
import { endKeptProcess } from './command_process.ts'

afterAll(endKeptProcess)
