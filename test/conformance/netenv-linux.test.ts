/** The network's suite over real devices, rules and dnsmasq, each case on a host of namespaces. Needs root. */
import { networkSuite } from '@eitri/conformance';
import { netenvContext } from '../support/netenv/context.js';

networkSuite('network: netenv-linux', netenvContext, { timeoutMs: 120_000 });
