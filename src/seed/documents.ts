/**
 * The four documents of a NoCloud seed. Pure and byte-stable: equal input gives equal bytes.
 *
 * Who says what, and why there (docs/adr/0010-what-a-seed-says-and-where.md):
 *   meta-data       instance-id, host name, users' SSH keys: applied whatever the user-data is, even a script
 *   user-data       the user's own, byte for byte
 *   vendor-data     SSH host keys and the re-reading of network-config: cloud-config that the user's own wins over
 *   network-config  NICs by MAC
 * All of it is JSON, which is YAML without its quoting traps.
 */
import type { VmUid } from '@eitri/core/contracts';
import { bug } from '@eitri/core/kit';

export interface SeedContent {
  readonly uid: VmUid;
  readonly hostname: string;
  readonly sshKeys: readonly string[];
  readonly userData: string | undefined;
  readonly mac: string;
  readonly namedMac: string | undefined;
  readonly hostKey: { readonly privateOpenSsh: string; readonly publicLine: string };
}

/** File name in the root of the volume → content. */
export type SeedDocuments = Readonly<Record<'meta-data' | 'user-data' | 'vendor-data' | 'network-config', string>>;

/** The second NIC's default route, where its network offers one, stands behind the first's. */
const NAMED_ROUTE_METRIC = 200;
const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

export function seedDocuments(content: SeedContent): SeedDocuments {
  return {
    'meta-data': json({
      'instance-id': content.uid,
      'local-hostname': content.hostname,
      'public-keys': content.sshKeys.map((key) => key.trim()).filter((key) => key !== ''),
    }),
    // An empty user-data is valid, but some guests' older cloud-init warns about it.
    'user-data': content.userData ?? '#cloud-config\n{}\n',
    'vendor-data': `#cloud-config\n${json({
      ssh_keys: {
        ed25519_private: withNewline(content.hostKey.privateOpenSsh),
        ed25519_public: withNewline(content.hostKey.publicLine),
      },
      // Without it a NIC added later stays unconfigured: cloud-init reads network-config at the first boot only.
      updates: { network: { when: ['boot-new-instance', 'boot'] } },
    })}`,
    'network-config': json({ version: 2, ethernets: ethernets(content) }),
  };
}

/** NIC ORDER IS THE GUEST ABI: eth0 is the NAT NIC, eth1 the named network's, whatever order the guest's kernel finds. */
function ethernets(content: SeedContent): Readonly<Record<string, unknown>> {
  const first = { eth0: ethernet('eth0', content.mac) };
  if (content.namedMac === undefined) return first;
  const second = ethernet('eth1', content.namedMac);
  // `optional`: a dead site network must not hold up the boot.
  const behind = { ...second, optional: true, 'dhcp4-overrides': { 'route-metric': NAMED_ROUTE_METRIC } };
  return { ...first, eth1: behind };
}

function ethernet(name: string, mac: string): Readonly<Record<string, unknown>> {
  if (!MAC.test(mac)) throw bug(`the MAC ${JSON.stringify(mac)} of ${name} is not six lower-case octets`);
  // `dhcp-identifier`: a client id made from a machine id tells a DHCP server nothing about which VM asks.
  return { match: { macaddress: mac }, 'set-name': name, dhcp4: true, 'dhcp-identifier': 'mac' };
}

const withNewline = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`);

/** JSON that YAML parsers take too: they refuse these control characters where they stand unescaped. */
function json(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2).replace(
    /[\u007f-\u009f\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${text}\n`;
}
