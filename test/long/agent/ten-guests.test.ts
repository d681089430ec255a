/** Ten real guests on one bridge, from one agent. */
import { afterAll, expect, it } from 'vitest';
import { BridgeHost } from '../../support/bridge-host.js';
import { tinyManifest } from '../../support/guests.js';
import { until } from '../../support/until.js';

const NAMES = Array.from({ length: 10 }, (_, at) => `ten-${String(at)}`);
/** Ten guests boot at once without hardware acceleration. */
const PATIENT = { timeoutMs: 900_000, everyMs: 1_000 };
/** A guest that is up answers in seconds. */
const SOON = { timeoutMs: 120_000, everyMs: 500 };

let host: BridgeHost;
afterAll(() => host.remove());

it(
  'ten guests on one bridge have ten addresses, reach each other, are reached, and leave no tap, lease or rule',
  async () => {
    host = await BridgeHost.make();
    const { operator } = host;
    await operator.init();
    for (const name of NAMES) operator.put(`${name}.yaml`, await tinyManifest({ name, sshKey: host.publicKey }));
    await operator.start();
    const rules = await host.rules();
    const addresses = await until(async () => {
      const vms = await operator.vms();
      const known = vms.flatMap(({ address }) => (address === undefined ? [] : [address]));
      return known.length === NAMES.length ? known : undefined;
    }, PATIENT);
    expect(new Set(addresses).size).toBe(NAMES.length);
    for (const [at, address] of addresses.entries()) {
      expect(await until(() => host.page(address), PATIENT)).toMatch(/^tiny ten-/m);
      const next = addresses[(at + 1) % addresses.length] ?? '';
      const ask = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 20 ${next} 80`;
      expect(await until(() => host.ssh(address, ask), SOON)).toMatch(/^tiny ten-/m);
    }
    expect(new Set(host.leases().map(({ address }) => address))).toEqual(new Set(addresses));
    for (const name of NAMES) await operator.done('vm', 'delete', name);
    await until(async () => (await operator.vms()).length === 0, PATIENT);
    expect(await host.taps()).toEqual([]);
    expect(host.leases()).toEqual([]);
    expect(await host.rules()).toBe(rules);
  },
  2 * PATIENT.timeoutMs,
);
