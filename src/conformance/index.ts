/** What tests of a backend are made of: suites, pins, fakes, a clock that stands still. */
export * from './manual-clock.js';
export * from './suite.js';
