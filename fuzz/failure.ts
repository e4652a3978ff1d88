export { LabFailure as FuzzFailure } from '../lab/failure.ts'
