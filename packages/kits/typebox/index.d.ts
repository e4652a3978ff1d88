export { default, type Static, type TSchema } from 'typebox'
export { Compile } from 'typebox/compile'
