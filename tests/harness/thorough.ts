/** Whether this run takes the time for what is slow, as the gate does; otherwise a test takes a part of its cases. */
export const IS_THOROUGH = process.env.TEST_THOROUGH === '1'
