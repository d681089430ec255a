/** What `npm run sim` makes one file of. */
import 'reflect-metadata';

export { tryHistory } from './run.js';
export { historyOf } from './steps.js';
