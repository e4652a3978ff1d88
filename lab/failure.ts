/** An expected reason to end the run, reported without a stack to the person who started it. */
export class LabFailure extends Error {}
