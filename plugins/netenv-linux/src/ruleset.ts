/**
 * The rules of the guests' network, as text for `nft -f`. Pure and byte-stable.
 *
 * One table of our own, made anew in one transaction: a table that is declared, deleted and declared again is replaced
 * without a moment in which it is not there, and without what a former version left in it. Counters have no place in it:
 * what the kernel lists is compared with what it listed before. No chain may be called fwd, which is a word of nft's.
 */
import { formatCidr, type Cidr } from './cidr.js';
import { TABLE } from './names.js';

/** Priorities by their numbers: their names differ between versions of nft. */
export function rulesetOf(guests: Cidr, bridge: string): string {
  const subnet = formatCidr(guests);
  return `table inet ${TABLE}
delete table inet ${TABLE}
table inet ${TABLE} {
  chain forward {
    type filter hook forward priority 0; policy accept;
    iifname "${bridge}" ip saddr != ${subnet} drop
    iifname != "${bridge}" oifname "${bridge}" ct state new ct status & dnat == 0 drop
  }
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${subnet} oifname != "${bridge}" masquerade
  }
}
`;
}

export const REMOVAL = `table inet ${TABLE}\ndelete table inet ${TABLE}\n`;
