/** A reason to end that the person who started the run can do something about, or needs to know: told without a stack. */
export class LabFailure extends Error {}
