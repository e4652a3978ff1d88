export { AnnalsSaver, type AnnalsSaverOptions } from './annals_saver.js'
