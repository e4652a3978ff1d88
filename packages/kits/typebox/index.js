export { default } from 'typebox'
export { Compile } from 'typebox/compile'
