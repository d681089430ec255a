/** tsyringe throws unless this came first. bin/run.js does the same for the agent. */
import 'reflect-metadata';
