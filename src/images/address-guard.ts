/**
 * Keeps image addresses that came over the wire away from what only this host may reach: itself, and the metadata
 * service of the cloud it runs in, which gives out credentials to whoever asks from here.
 *
 * Judged is the address that is connected to, after the name was looked up, for every hop of a redirect: a name may lead
 * anywhere, and somewhere else the second time. Manifests of this host's own operator need no guard.
 */
import { lookup as systemLookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { permanent } from '@eitri/core/kit';
import { Agent, buildConnector } from 'undici';

/** Why an address is refused; undefined: it is not. */
export type AddressJudge = (address: string) => string | undefined;

const HOST_ITSELF = blockList(['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']);
/** Link-local addresses, where most clouds have it, and those of clouds that put it elsewhere. */
const METADATA = blockList(['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::/32', '100.100.100.200/32', '192.0.0.192/32']);

/** Refuses loopback, metadata services, and these addresses of the host. */
export function hostAddressJudge(ownAddresses: readonly string[] = []): AddressJudge {
  const own = blockList(ownAddresses.map((address) => `${address}/${isIP(address) === 6 ? 128 : 32}`));
  return (address) => {
    // An IPv4 address in IPv6's clothes connects to the same place.
    const plain = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
    const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
    if (HOST_ITSELF.check(plain, family) || own.check(plain, family)) return 'it is an address of this host';
    return METADATA.check(plain, family) ? 'it is where clouds keep their metadata service' : undefined;
  };
}

/** A dispatcher that connects to no address that the judge refuses. The caller closes it. */
export function guardedAgent(judge: AddressJudge): Agent {
  const lookup: LookupFunction = (name, options, done) => {
    systemLookup(name, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        done(error, []);
        return;
      }
      for (const { address } of found) {
        const why = judge(address);
        if (why === undefined) continue;
        done(refused(name, address, why), []);
        return;
      }
      const first = found[0];
      if (options.all === true) done(null, found);
      else done(null, first?.address ?? '', first?.family);
    });
  };
  const connect = buildConnector({ lookup });
  return new Agent({
    connect: (options, callback) => {
      // Numbers are not looked up.
      const host = options.hostname.replace(/^\[|\]$/g, '');
      const why = isIP(host) === 0 ? undefined : judge(host);
      if (why === undefined) connect(options, callback);
      else callback(refused(host, host, why), null);
    },
  });
}

const refused = (name: string, address: string, why: string): Error =>
  permanent(`no image is fetched from ${name === address ? address : `${name} (${address})`}: ${why}`, {
    code: 'SpecInvalid',
  });

function blockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [net = '', prefix] = subnet.split('/');
    list.addSubnet(net, Number(prefix), isIP(net) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
