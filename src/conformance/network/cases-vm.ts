/**
 * Cases about the network as one VM sees it: addresses, taps, and the leases that its guest gets.
 */
import { isPermanent } from '@eitri/core/kit';
import { aborted, calm, check, knob, rejection, same, TIMES } from '../checks.js';
import {
  addressNumber,
  attach,
  boundsOf,
  bridgeName,
  bringUp,
  leaseIs,
  networkCase,
  reserveTheRest,
  tapOf,
  tapStands,
} from './checks.js';

const STICKY = "The VM's sticky address, allocated now if it has none. The same answer for the whole life.";
const ALONE = 'Resolved means that no other life gets it before `deleteTap`.';
const NONE_LEFT = 'Retryable when none is left, because one may be freed';
const ONE_MAC = 'permanent where another life has this MAC.';
const NEVER_ALLOCATES = 'The address already reserved; undefined: none is. Never allocates.';
const ON_BRIDGES = 'Creates the tap (and the named one), up and on their bridges, with the DHCP reservation in force.';
const KEPT = 'Called at every boot: devices of ours that stand already are made right and kept.';
const REFUSED = 'Permanent: a name that a foreign device holds, or a named network that this host does not serve.';
const REMOVES = 'Removes both taps, the reservation and the lease.';
const NONE_OF_THEM = 'Resolved means that none of them is left';
const NOT_SKIPPED = 'Not skipped because the signal is aborted: nobody else would come for what is left.';
const BESIDE = "Adds a second tap on this named network's bridge, never instead of the first.";
const AT_ONCE = 'Calls for several VMs run at once.';
const NOT_THERE = 'All are idempotent, and may be asked for a VM that is not there.';
const NAMES =
  "Device name of the first NIC's tap, at most 15 bytes. Derived from the uid alone: one answer for the whole life, whether or not the device is there. Never rejects.";

export const networkVmCases = [
  networkCase(
    "an address is reserved ten times: the same one, of the guest subnet, and not the network's, the host's or the broadcast",
    STICKY,
    [],
    async (context) => {
      await bringUp(context);
      const { uid, mac } = context.newVm();
      const address = await context.network.reserveIp(uid, mac, calm());
      for (let time = 0; time < TIMES; time++)
        same(await context.network.reserveIp(uid, mac, calm()), address, 'reserved again');
      const { first, last } = boundsOf(await context.hostNetwork.guestCidr());
      const number = addressNumber(address);
      check(number > first + 1 && number < last, `${address} is no address for a guest`);
    },
  ),
  networkCase('guests reserve at once: each has an address of its own', ALONE, [], async (context) => {
    await bringUp(context);
    const vms = Array.from({ length: Math.min(TIMES, context.mostGuests) }, () => context.newVm());
    const addresses = await Promise.all(vms.map(({ uid, mac }) => context.network.reserveIp(uid, mac, calm())));
    same(new Set(addresses).size, vms.length, 'distinct addresses');
  }),
  networkCase(
    'an address is asked for before it is reserved: undefined, and none is taken',
    NEVER_ALLOCATES,
    [],
    async (context) => {
      await bringUp(context);
      const { uid, mac } = context.newVm();
      for (let time = 0; time < TIMES; time++) same(await context.network.address(uid, calm()), undefined, 'address');
      const address = await context.network.reserveIp(uid, mac, calm());
      same(await context.network.address(uid, calm()), address, 'address once it is reserved');
    },
  ),
  networkCase(
    'all addresses are reserved: one more is refused, retryable, and given when one is free again',
    NONE_LEFT,
    [],
    async (context) => {
      await bringUp(context);
      const first = await attach(context);
      await reserveTheRest(context);
      const late = context.newVm();
      const error = await rejection(
        context.network.reserveIp(late.uid, late.mac, calm()),
        'one guest more than have room',
      );
      check(!isPermanent(error), 'it is a permanent error, and would never be tried again');
      await context.network.deleteTap(first.vm.uid, calm());
      same(await context.network.reserveIp(late.uid, late.mac, calm()), first.reservation.address, 'the freed address');
    },
  ),
  networkCase('a tap is created ten times: one device, up and on the bridge', KEPT, [], async (context) => {
    await bringUp(context);
    const { vm, request } = await attach(context);
    for (let time = 0; time < TIMES; time++) await context.network.createTap(request, calm());
    const name = await context.network.tapName(vm.uid);
    await tapStands(context, name, await bridgeName(context), 'after ten times');
    same((await context.probes.taps()).length, 1, 'devices');
  }),
  networkCase(
    'a guest is attached: its client is given the reserved address, and a stranger nothing',
    ON_BRIDGES,
    [],
    async (context) => {
      await bringUp(context);
      const { reservation } = await attach(context);
      await leaseIs(context, reservation.mac, reservation.address, 'once its tap is created');
      await leaseIs(context, context.newVm().mac, undefined, 'that nobody knows');
    },
  ),
  networkCase('guests are attached at once: each is given its own address', AT_ONCE, [], async (context) => {
    await bringUp(context);
    const attached = await Promise.all([attach(context), attach(context), attach(context)]);
    for (const { reservation } of attached) {
      await leaseIs(context, reservation.mac, reservation.address, 'attached beside others');
    }
  }),
  networkCase(
    "a named network is asked for: a second tap on its bridge, and the first one on the guests'",
    BESIDE,
    [],
    async (context) => {
      await bringUp(context);
      const { vm } = await attach(context, context, true);
      await tapStands(context, await context.network.tapName(vm.uid), await bridgeName(context), 'beside a named one');
      await tapStands(context, await context.network.netTapName(vm.uid), context.named.bridge, 'of the named network');
    },
  ),
  networkCase(
    "a stranger's device has the tap's name: refused, permanent, and the device is left",
    REFUSED,
    ['foreignDevice'],
    async (context) => {
      await bringUp(context);
      const { uid, mac } = context.newVm();
      const name = await context.network.tapName(uid);
      await knob(context, 'foreignDevice')(name);
      const before = await tapOf(context, name);
      const address = await context.network.reserveIp(uid, mac, calm());
      const error = await rejection(
        context.network.createTap({ uid, mac, address }, calm()),
        'createTap over a stranger',
      );
      check(isPermanent(error), 'it is retryable, and would be tried for ever');
      same(await tapOf(context, name), before, "the stranger's device");
    },
  ),
  networkCase(
    'a guest is taken off, ten times: no tap, no reservation, no lease',
    NONE_OF_THEM,
    [],
    async (context) => {
      await bringUp(context);
      const { vm, reservation } = await attach(context, context, true);
      await leaseIs(context, reservation.mac, reservation.address, 'while it is attached');
      for (let time = 0; time < TIMES; time++) await context.network.deleteTap(vm.uid, calm());
      same(await context.probes.taps(), [], 'taps');
      same(await context.network.address(vm.uid, calm()), undefined, 'address');
      await leaseIs(context, reservation.mac, undefined, 'after it was taken off');
    },
  ),
  networkCase(
    'a guest that never was is taken off: resolved, and the others keep what they have',
    NOT_THERE,
    [],
    async (context) => {
      await bringUp(context);
      const { vm, reservation } = await attach(context);
      const never = context.newVm();
      await context.network.deleteTap(never.uid, calm());
      await tapStands(context, await context.network.tapName(vm.uid), await bridgeName(context), 'of another guest');
      same(await context.network.address(vm.uid, calm()), reservation.address, 'address of another guest');
    },
  ),
  networkCase(
    "a guest's address is free again: the next guest that has it is given it, though it was leased",
    REMOVES,
    [],
    async (context) => {
      await bringUp(context);
      const first = await attach(context);
      await reserveTheRest(context);
      const { address } = first.reservation;
      await leaseIs(context, first.reservation.mac, address, 'of the first guest');
      await context.network.deleteTap(first.vm.uid, calm());
      const second = await attach(context);
      same(second.reservation.address, address, 'the only free address');
      await leaseIs(context, second.reservation.mac, address, 'of the second guest');
    },
  ),
  networkCase(
    'names of taps: the same at each call, distinct, and within what the kernel takes',
    NAMES,
    [],
    async (context) => {
      const vms = [context.newVm(), context.newVm()];
      const namesOf = (): Promise<readonly string[]> =>
        Promise.all(vms.flatMap(({ uid }) => [context.network.tapName(uid), context.network.netTapName(uid)]));
      const names = await namesOf();
      for (let time = 0; time < TIMES; time++) same(await namesOf(), names, 'names');
      same(new Set(names).size, names.length, 'distinct names');
      for (const name of names) check(/^[a-z][a-z0-9-]{0,14}$/.test(name), `"${name}" is no device's name`);
    },
  ),
  networkCase('two lives come with one MAC: the second is refused, permanent', ONE_MAC, [], async (context) => {
    await bringUp(context);
    const [first, second] = [context.newVm(), context.newVm()];
    await context.network.reserveIp(first.uid, first.mac, calm());
    const error = await rejection(
      context.network.reserveIp(second.uid, first.mac, calm()),
      'a second life with this MAC',
    );
    check(isPermanent(error), 'it is retryable');
    same(await context.network.address(second.uid, calm()), undefined, 'address of the second');
  }),
  networkCase(
    'a named network that this host does not serve: refused, permanent, and no tap is left',
    REFUSED,
    [],
    async (context) => {
      await bringUp(context);
      const { uid, mac, namedMac } = context.newVm();
      const address = await context.network.reserveIp(uid, mac, calm());
      const request = { uid, mac, address, named: { network: 'nowhere', mac: namedMac } };
      const error = await rejection(context.network.createTap(request, calm()), 'createTap on an unknown network');
      check(isPermanent(error), 'it is retryable');
      same(await context.probes.taps(), [], 'taps');
    },
  ),
  networkCase(
    'a guest is taken off by a call that is given up: nothing of it is left',
    NOT_SKIPPED,
    [],
    async (context) => {
      await bringUp(context);
      const { vm } = await attach(context);
      await context.network.deleteTap(vm.uid, aborted());
      same(await context.probes.taps(), [], 'taps');
      same(await context.network.address(vm.uid, calm()), undefined, 'address');
    },
  ),
] as const;
