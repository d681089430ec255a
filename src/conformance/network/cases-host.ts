/**
 * Cases about the host's side: the start, the restart of the agent, drift, and the end.
 */
import { isPermanent } from '@eitri/core/kit';
import { aborted, calm, check, knob, rejection, same, tells, TIMES } from '../checks.js';
import { attach, bridgeName, bringUp, leaseIs, networkCase, tapStands } from './checks.js';
import type { NetworkContext, NetworkLife } from './context.js';

const VERIFIES =
  "Checks that each named network's bridge exists. Changes nothing. Rejects, permanent, in the words of `--host-network`.";
const REFUSES = "Refuses, permanent, a guest subnet that overlaps the host's uplink, and names both";
const ONLY_SAYS = "where guests exist, whose subnet can't be changed under them, it only says so.";
const ENSURES = 'Makes bridge, NAT and isolation true. Idempotent, and rewrites nothing that is right';
const FOREIGN = "Permanent: a tool is missing, or a device of that name is somebody else's.";
const REPLAYS = 'Puts the reservations of all records back, before DHCP answers.';
const KEEPS_LOST =
  "A life whose record can't be read keeps what a former agent had DHCP answer for its MAC, as far as that can be found out on the host: its guest may run, and its address is given to nobody else.";
const LEAVES_OUT =
  "One that can't be served (outside the subnet, an address of another life) is left out and told in the log, and takes no other's place.";
const TAKES_OVER =
  'Starts to answer DHCP and DNS, or takes over a server that a former agent left running. Idempotent.';
const REPAIRS = 'Puts back what drifted (a flushed rule, a missing bridge)';
const NOTHING_TO_MEND =
  'with nothing to mend it changes nothing and resolves with an empty list, else with a sentence for each thing it mended.';
const EXAMINES =
  'What an operator should know of the network as it stands, one finding each, well or not. Changes nothing. At any time, also before anything was made, and beside another agent that runs.';
const TEARS_DOWN = 'Idempotent; resolved means that nothing of ours is left.';
const NOT_SKIPPED = 'Not skipped because the signal is aborted.';
const LEAVES =
  'Drops handles and leaves the network standing: guests outlive the agent. Called last. Idempotent, also before anything was started. Never rejects.';
const SORTED =
  'Names of the named networks, sorted. Changes only with a restart; empty where none is declared. Never rejects.';
const SUBNET = 'Chosen when the plugin was created, one answer for its life. Never rejects.';

async function nothingMade(context: NetworkContext, when: string): Promise<void> {
  same(await context.probes.bridge(), undefined, `bridge ${when}`);
  same(await context.probes.natRules(), 0, `rules ${when}`);
  same(await context.probes.dhcpServers(), 0, `DHCP servers ${when}`);
}

/** One repair tells of the drift, the next one of nothing. */
async function repaired(context: NetworkContext, drift: string): Promise<void> {
  const told = await context.hostNetwork.repair(calm());
  check(told.length > 0, `${drift}, and repair tells of nothing`);
  same(await context.hostNetwork.repair(calm()), [], `what a second repair mended after ${drift}`);
}

export const networkHostCases = [
  networkCase(
    'the host is fit: verified and checked ten times, and nothing is made by it',
    VERIFIES,
    [],
    async (context) => {
      for (let time = 0; time < TIMES; time++) {
        await context.hostNetwork.verifyNetworks(calm());
        await context.hostNetwork.checkUplink(calm());
      }
      await nothingMade(context, 'after it was only looked at');
    },
  ),
  networkCase(
    'the bridge of a named network is missing: refused, permanent, by the flag and its names',
    VERIFIES,
    ['removeNamedBridge'],
    async (context) => {
      await knob(context, 'removeNamedBridge')();
      const error = await rejection(context.hostNetwork.verifyNetworks(calm()), 'verifyNetworks without the bridge');
      check(isPermanent(error), 'it is retryable');
      const { name, bridge } = context.named;
      check(tells(error, `--host-network ${name}=${bridge}`), `it does not tell of --host-network ${name}=${bridge}`);
      await nothingMade(context, 'after the refusal');
    },
  ),
  networkCase(
    'the guest subnet overlaps a route of the host: refused, permanent, and nothing is made',
    REFUSES,
    ['overlap'],
    async (context) => {
      await knob(context, 'overlap')();
      const error = await rejection(context.hostNetwork.checkUplink(calm()), 'checkUplink over an overlap');
      check(isPermanent(error), 'it is retryable');
      check(tells(error, await context.hostNetwork.guestCidr()), 'it does not name the subnet');
      await nothingMade(context, 'after the refusal');
    },
  ),
  networkCase(
    "a stranger has the bridge's name: refused, permanent, and the stranger is left",
    FOREIGN,
    ['foreignDevice'],
    async (context) => {
      await bringUp(context);
      const name = await bridgeName(context);
      await context.hostNetwork.teardown(calm());
      await knob(context, 'foreignDevice')(name);
      const before = await context.probes.bridge();
      const error = await rejection(context.hostNetwork.ensureBridge(calm()), 'ensureBridge over a stranger');
      check(isPermanent(error), 'it is retryable');
      same(await context.probes.bridge(), before, "the stranger's bridge");
    },
  ),
  networkCase('the bridge is ensured ten times: the same one, with one rule', ENSURES, [], async (context) => {
    await context.hostNetwork.ensureBridge(calm());
    const before = await context.probes.bridge();
    check(before !== undefined, 'there is no bridge');
    for (let time = 0; time < TIMES; time++) await context.hostNetwork.ensureBridge(calm());
    same(await context.probes.bridge(), before, 'bridge');
    same(await context.probes.natRules(), 1, 'rules');
  }),
  networkCase('guests come and go: the bridge keeps its MAC', ENSURES, [], async (context) => {
    await bringUp(context);
    const before = await context.probes.bridge();
    const guests = [await attach(context), await attach(context), await attach(context)];
    same(await context.probes.bridge(), before, 'bridge with guests');
    for (const { vm } of guests) await context.network.deleteTap(vm.uid, calm());
    same(await context.probes.bridge(), before, 'bridge without guests');
  }),
  networkCase(
    'the subnet and the named networks are asked for ten times: the same, sorted',
    SORTED,
    [],
    async (context) => {
      const networks = await context.hostNetwork.hostNetworks();
      const cidr = await context.hostNetwork.guestCidr();
      check(/^(\d{1,3}\.){3}\d{1,3}\/\d{1,2}$/.test(cidr), `"${cidr}" is no subnet; the contract: ${SUBNET}`);
      check(networks.includes(context.named.name), `${context.named.name} is not among ${networks.join(', ')}`);
      same(networks, [...networks].sort(), 'order');
      for (let time = 0; time < TIMES; time++) {
        same(await context.hostNetwork.hostNetworks(), networks, 'named networks');
        same(await context.hostNetwork.guestCidr(), cidr, 'subnet');
      }
    },
  ),
  networkCase(
    'the agent restarts and replays: the address is known, answered, and not given to another',
    REPLAYS,
    [],
    async (context) => {
      await bringUp(context);
      const { vm, reservation } = await attach(context);
      const next = await context.restart();
      await bringUp(next, [reservation]);
      same(await next.network.address(vm.uid, calm()), reservation.address, 'address');
      same(await next.network.reserveIp(vm.uid, vm.mac, calm()), reservation.address, 'reserved again');
      await leaseIs(context, vm.mac, reservation.address, 'after the restart');
      for (let n = 1; n < context.mostGuests; n++) {
        const { uid, mac } = context.newVm();
        check(
          (await next.network.reserveIp(uid, mac, calm())) !== reservation.address,
          'its address was given to another',
        );
      }
    },
  ),
  networkCase(
    "the agent restarts and can't read a record: its guest is answered as before, also after a repair",
    KEEPS_LOST,
    [],
    async (context) => {
      await bringUp(context);
      const { vm, reservation } = await attach(context);
      await leaseIs(context, vm.mac, reservation.address, 'before the restart');
      const next = await context.restart();
      await bringUp(next, [{ uid: vm.uid, mac: vm.mac }]);
      same(await next.network.address(vm.uid, calm()), reservation.address, 'address');
      same(await next.hostNetwork.repair(calm()), [], 'what a repair mended');
      await leaseIs(context, vm.mac, reservation.address, 'after the restart');
    },
  ),
  networkCase('reservations are replayed ten times: as once', REPLAYS, [], async (context) => {
    await context.hostNetwork.ensureBridge(calm());
    const { uid, mac } = context.newVm();
    await context.hostNetwork.replayReservations([], calm());
    const address = await context.network.reserveIp(uid, mac, calm());
    const next = await context.restart();
    for (let time = 0; time < TIMES; time++) await next.hostNetwork.replayReservations([{ uid, mac, address }], calm());
    await next.hostNetwork.startDhcp(calm());
    same(await next.network.address(uid, calm()), address, 'address');
    await leaseIs(context, mac, address, 'of a reservation that was only replayed');
  }),
  networkCase(
    'DHCP is started ten times, and by the next agent: one server, and guests keep their addresses',
    TAKES_OVER,
    [],
    async (context) => {
      await bringUp(context);
      const { vm, reservation } = await attach(context);
      for (let time = 0; time < TIMES; time++) await context.hostNetwork.startDhcp(calm());
      same(await context.probes.dhcpServers(), 1, 'DHCP servers');
      const next = await context.restart();
      await bringUp(next, [reservation]);
      same(await context.probes.dhcpServers(), 1, 'DHCP servers after the restart');
      await leaseIs(context, vm.mac, reservation.address, 'after the restart');
    },
  ),
  networkCase('nothing drifted: repair mends nothing, ten times', NOTHING_TO_MEND, [], async (context) => {
    await bringUp(context);
    await attach(context, context, true);
    for (let time = 0; time < TIMES; time++) same(await context.hostNetwork.repair(calm()), [], 'mended');
    same(await context.probes.natRules(), 1, 'rules');
  }),
  networkCase(
    'the rules are flushed, ten times: put back each time, once',
    REPAIRS,
    ['flushRules'],
    async (context) => {
      await bringUp(context);
      for (let time = 0; time < TIMES; time++) {
        await knob(context, 'flushRules')();
        await repaired(context, 'the rules were flushed');
        same(await context.probes.natRules(), 1, 'rules');
      }
    },
  ),
  networkCase(
    'the bridge is deleted: it is there again, with its guests on it and DHCP that answers them',
    REPAIRS,
    ['removeBridge'],
    async (context) => {
      await bringUp(context);
      const { vm, reservation } = await attach(context);
      const before = await context.probes.bridge();
      await knob(context, 'removeBridge')();
      await repaired(context, 'the bridge was deleted');
      same(await context.probes.bridge(), before, 'bridge');
      await tapStands(context, await context.network.tapName(vm.uid), await bridgeName(context), 'after the repair');
      await leaseIs(context, vm.mac, reservation.address, 'after the repair');
    },
  ),
  networkCase('a tap is taken off its bridge: it is on it again', REPAIRS, ['detachTap'], async (context) => {
    await bringUp(context);
    const { vm } = await attach(context);
    const name = await context.network.tapName(vm.uid);
    await knob(context, 'detachTap')(name);
    await repaired(context, 'a tap was taken off its bridge');
    await tapStands(context, name, await bridgeName(context), 'after the repair');
  }),
  networkCase('the DHCP server dies: it answers again', REPAIRS, ['killDhcp'], async (context) => {
    await bringUp(context);
    const { reservation } = await attach(context);
    await knob(context, 'killDhcp')();
    await repaired(context, 'the DHCP server died');
    same(await context.probes.dhcpServers(), 1, 'DHCP servers');
    await leaseIs(context, reservation.mac, reservation.address, 'after the repair');
  }),
  networkCase('the network is closed: bridge, rules, taps and DHCP stand', LEAVES, [], async (context) => {
    await bringUp(context);
    const { vm, reservation } = await attach(context);
    const bridge = await context.probes.bridge();
    for (let time = 0; time < TIMES; time++) await context.hostNetwork.close();
    same(await context.probes.bridge(), bridge, 'bridge');
    same(await context.probes.natRules(), 1, 'rules');
    await tapStands(context, await context.network.tapName(vm.uid), await bridgeName(context), 'after the end');
    await leaseIs(context, vm.mac, reservation.address, 'after the end');
  }),
  networkCase(
    'the network is taken down, ten times: nothing of it is left, and it comes up again',
    TEARS_DOWN,
    [],
    async (context) => {
      await bringUp(context);
      const { reservation } = await attach(context, context, true);
      for (let time = 0; time < TIMES; time++) await context.hostNetwork.teardown(calm());
      await nothingMade(context, 'after the teardown');
      same(await context.probes.taps(), [], 'taps');
      await bringUp(context, [reservation]);
      await leaseIs(context, reservation.mac, reservation.address, 'of the network that came up again');
    },
  ),
  networkCase(
    'a guest exists, and then the host has a route that overlaps its subnet: the start goes on',
    ONLY_SAYS,
    ['overlap'],
    async (context) => {
      context.newVm();
      await knob(context, 'overlap')();
      await context.hostNetwork.checkUplink(calm());
    },
  ),
  networkCase(
    "two records tell of one address, and one of another subnet's: the first is answered, the others have no address",
    LEAVES_OUT,
    [],
    async (context) => {
      const [first, second, third] = [context.newVm(), context.newVm(), context.newVm()];
      await context.hostNetwork.ensureBridge(calm());
      await context.hostNetwork.replayReservations([], calm());
      const address = await context.network.reserveIp(first.uid, first.mac, calm());
      const next = await context.restart();
      const records = [
        { uid: first.uid, mac: first.mac, address },
        { uid: second.uid, mac: second.mac, address },
        { uid: third.uid, mac: third.mac, address: '203.0.113.9' },
      ];
      await bringUp(next, records);
      same(await next.network.address(first.uid, calm()), address, 'address of the first');
      for (const { uid } of [second, third]) same(await next.network.address(uid, calm()), undefined, 'address');
      await leaseIs(context, first.mac, address, 'of the first');
      check((await next.network.reserveIp(second.uid, second.mac, calm())) !== address, 'it is given away twice');
    },
  ),
  networkCase(
    'the network is examined ten times, before it is made and while it stands: all is well, and nothing is changed',
    EXAMINES,
    [],
    async (context) => {
      const well = async (life: NetworkLife, when: string): Promise<void> => {
        for (let time = 0; time < TIMES; time++) {
          const findings = await life.hostNetwork.examine(calm());
          check(findings.length > 0, `nothing is told ${when}`);
          same(
            findings.filter(({ level }) => level !== 'ok'),
            [],
            `what is not well ${when}`,
          );
        }
      };
      await well(context, 'before it is made');
      await nothingMade(context, 'after it was only examined');
      await bringUp(context);
      const { vm } = await attach(context);
      const other = await context.restart();
      await well(other, 'beside another agent');
      same(await context.probes.dhcpServers(), 1, 'DHCP servers');
      await tapStands(context, await context.network.tapName(vm.uid), await bridgeName(context), 'after it');
    },
  ),
  networkCase(
    'the host has a route that overlaps the guest subnet: told when it is examined, with the subnet',
    EXAMINES,
    ['overlap'],
    async (context) => {
      await knob(context, 'overlap')();
      const cidr = await context.hostNetwork.guestCidr();
      const findings = await context.hostNetwork.examine(calm());
      const told = findings.some(({ level, detail }) => level !== 'ok' && detail.includes(cidr));
      check(told, `no finding tells of ${cidr}`);
    },
  ),
  networkCase('the network is taken down by a call that is given up: it is down', NOT_SKIPPED, [], async (context) => {
    await bringUp(context);
    await context.hostNetwork.teardown(aborted());
    await nothingMade(context, 'after the teardown');
  }),
] as const;
