import type { VmUid } from '@eitri/core/contracts';
import { isBug } from '@eitri/core/kit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { seedDocuments, type SeedContent } from '../../../src/seed/documents.js';

const content = (more: Partial<SeedContent> = {}): SeedContent => ({
  uid: '6f1c1c1e-0000-4000-8000-000000000001' as VmUid,
  hostname: 'web-1',
  sshKeys: ['ssh-ed25519 AAAA me@home'],
  userData: undefined,
  mac: '02:aa:bb:cc:dd:01',
  namedMac: undefined,
  hostKey: { privateOpenSsh: '-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END', publicLine: 'ssh-ed25519 BBBB' },
  ...more,
});

/** What YAML readers refuse where it stands unescaped; line breaks are layout. */
const isControl = (character: string): boolean => {
  const code = character.codePointAt(0) ?? 0;
  return (code < 0x20 && character !== '\n') || (code >= 0x7f && code < 0xa0);
};

describe('the documents of a seed', () => {
  it('are these, byte for byte', () => {
    const named = '02:aa:bb:cc:dd:02';
    expect(seedDocuments(content({ namedMac: named }))).toMatchInlineSnapshot(`
      {
        "meta-data": "{
        "instance-id": "6f1c1c1e-0000-4000-8000-000000000001",
        "local-hostname": "web-1",
        "public-keys": [
          "ssh-ed25519 AAAA me@home"
        ]
      }
      ",
        "network-config": "{
        "version": 2,
        "ethernets": {
          "eth0": {
            "match": {
              "macaddress": "02:aa:bb:cc:dd:01"
            },
            "set-name": "eth0",
            "dhcp4": true,
            "dhcp-identifier": "mac"
          },
          "eth1": {
            "match": {
              "macaddress": "02:aa:bb:cc:dd:02"
            },
            "set-name": "eth1",
            "dhcp4": true,
            "dhcp-identifier": "mac",
            "optional": true,
            "dhcp4-overrides": {
              "route-metric": 200
            }
          }
        }
      }
      ",
        "user-data": "#cloud-config
      {}
      ",
        "vendor-data": "#cloud-config
      {
        "ssh_keys": {
          "ed25519_private": "-----BEGIN OPENSSH PRIVATE KEY-----\\nabc\\n-----END\\n",
          "ed25519_public": "ssh-ed25519 BBBB\\n"
        },
        "updates": {
          "network": {
            "when": [
              "boot-new-instance",
              "boot"
            ]
          }
        }
      }
      ",
      }
    `);
  });

  it('leave user-data as it came, whatever it is, and say the same beside it', () => {
    const { 'user-data': ours, ...beside } = seedDocuments(content());
    for (const userData of ['#!/bin/sh\nexit 0', '#cloud-config\nssh_authorized_keys: [x]\r\n', '']) {
      const { 'user-data': passed, ...others } = seedDocuments(content({ userData }));
      expect(passed).toBe(userData);
      expect(others).toEqual(beside);
    }
  });

  it('are YAML that says what went in, whatever characters there are in it', () => {
    const text = fc.string({ unit: 'binary', minLength: 1 });
    fc.assert(
      fc.property(text, text, (hostname, key) => {
        const documents = seedDocuments(content({ hostname, sshKeys: [key] }));
        expect(Array.from(documents['meta-data']).filter(isControl)).toEqual([]);
        const trimmed = key.trim();
        expect(parse(documents['meta-data'])).toMatchObject({
          'local-hostname': hostname,
          'public-keys': trimmed === '' ? [] : [trimmed],
        });
      }),
    );
  });

  it.each(['02:AA:BB:CC:DD:01', '02aabbccdd01', ''])('are not made for the MAC %j', (mac) => {
    let thrown: unknown;
    try {
      seedDocuments(content({ mac }));
    } catch (error) {
      thrown = error;
    }
    expect(isBug(thrown)).toBe(true);
  });
});
