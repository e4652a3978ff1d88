export { LabFailure as BenchFailure } from '../lab/failure.ts'
