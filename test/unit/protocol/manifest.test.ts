import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import fc from 'fast-check';
import { issueLine, manifestName, parseManifest, vmSpecSchema, type ParsedManifest } from '@eitri/protocol';

const blob = (type: string): string => {
  const length = (n: number): Buffer => Buffer.from([0, 0, 0, n]);
  return Buffer.concat([length(type.length), Buffer.from(type), length(32), Buffer.alloc(32, 7)]).toString('base64');
};
const KEY = `ssh-ed25519 ${blob('ssh-ed25519')} me@example`;
const HEX = 'ab'.repeat(32);

const inFolder = (text: string): ParsedManifest => parseManifest(parse(text), { userDataFile: true });

/** A manifest with these lines under `spec`. */
const withSpec = (spec: string): string =>
  `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata: {name: web-1}\nspec:\n${spec.replace(/^/gm, '  ')}\n`;

const specOf = (text: string) => {
  const parsed = inFolder(withSpec(text));
  if (!parsed.ok) throw new Error(parsed.issues.map(issueLine).join('\n'));
  return parsed.spec;
};

const linesOf = (value: unknown): string => {
  const parsed = parseManifest(value, { userDataFile: true });
  return parsed.ok ? 'accepted\n' : `${parsed.issues.map(issueLine).join('\n')}\n`;
};

describe('a manifest that says little', () => {
  it('gets every default, and no field whose default is known only later', () => {
    expect(inFolder(withSpec('image: debian-12'))).toEqual({
      ok: true,
      spec: {
        id: 'web-1',
        labels: {},
        power: 'running',
        cpus: 1,
        memoryMib: 1024,
        image: { kind: 'catalog', name: 'debian-12' },
        volumes: [],
        networks: [],
        exposures: [],
        sshKeys: [],
        hostname: 'web-1',
        hardware: {},
        limits: {},
        restart: 'always',
        shutdown: { graceSeconds: 90 },
      },
    });
  });

  it('whose name ends with a hyphen gets a host name that may not', () => {
    const parsed = inFolder(withSpec('image: x').replace('web-1', 'web-'));
    expect(parsed.ok && parsed.spec.hostname).toBe('web');
  });
});

it('a manifest that says all is carried over in the units of the wire', () => {
  const text = `
apiVersion: eitri/v1
kind: VirtualMachine
metadata: {name: web-1, labels: {role: web}}
spec:
  power: stopped
  cpus: 2
  memory: 2G
  disk: 20GiB
  image: {url: "https://example.org/a.qcow2", sha256: ${HEX.toUpperCase()}, format: qcow2}
  volumes: [{name: data, size: 100GiB}, {name: logs, size: 1}]
  networks: [{name: lab}]
  exposures: [{hostPort: 8080, guestPort: 80}, {hostPort: 8080, guestPort: 53, protocol: udp, hostAddress: "::1"}]
  sshKeys: ["${KEY}"]
  hostname: web.example.org
  userDataFile: web.cfg
  hardware: {hugepages: 2M, sharedMemory: false, cpuAffinity: {0: [2, 3], 1: [4]}, tpm: true, vsock: true, smbiosSerial: x-1}
  limits: {diskIops: 500, diskBandwidth: 100MiB, netBandwidth: 1000Mbit}
  restart: on-failure
  shutdown: {graceSeconds: 5}
`;
  expect(inFolder(text)).toEqual({
    ok: true,
    userDataFile: 'web.cfg',
    spec: {
      id: 'web-1',
      labels: { role: 'web' },
      power: 'stopped',
      cpus: 2,
      memoryMib: 2048,
      diskGib: 20,
      image: {
        kind: 'url',
        url: 'https://example.org/a.qcow2',
        digest: { algorithm: 'sha256', hex: HEX },
        format: 'qcow2',
      },
      volumes: [
        { name: 'data', sizeGib: 100 },
        { name: 'logs', sizeGib: 1 },
      ],
      networks: [{ name: 'lab' }],
      exposures: [
        { hostAddress: '0.0.0.0', hostPort: 8080, guestPort: 80, protocol: 'tcp' },
        { hostAddress: '::1', hostPort: 8080, guestPort: 53, protocol: 'udp' },
      ],
      sshKeys: [KEY],
      hostname: 'web.example.org',
      hardware: {
        hugepages: '2MiB',
        sharedMemory: false,
        cpuAffinity: { 0: [2, 3], 1: [4] },
        tpm: true,
        vsock: true,
        smbiosSerial: 'x-1',
      },
      limits: { diskIops: 500, diskBandwidthBytes: 100 * 2 ** 20, netBandwidthBits: 1e9 },
      restart: 'on-failure',
      shutdown: { graceSeconds: 5 },
    },
  });
});

describe('sizes', () => {
  it.each([
    ['512', 512],
    ['"512"', 512],
    ['64MiB', 64],
    ['2GiB', 2048],
    ['2 GiB', 2048],
    ['2G', 2048],
    ['1048576KiB', 1024],
    ['16T', 2 ** 24],
  ])('memory %s is %i MiB', (text, mib) => {
    expect(specOf(`image: x\nmemory: ${text}`).memoryMib).toBe(mib);
  });

  it.each([
    ['20', 20],
    ['20GiB', 20],
    ['1T', 1024],
    ['1024MiB', 1],
    ['1048576GiB', 2 ** 20],
  ])('disk %s is %i GiB', (text, gib) => {
    expect(specOf(`image: x\ndisk: ${text}`).diskGib).toBe(gib);
  });
});

/** One golden file each: what a person reads who wrote this. */
const REFUSED: Readonly<Record<string, string>> = {
  numbers: withSpec('image: x\ncpus: 0\nmemory: 63\ndisk: 0\nshutdown: {graceSeconds: 0}\nlimits: {diskIops: 1.5}'),
  'too-large': withSpec('image: x\ncpus: 257\nmemory: 17TiB\ndisk: 1048577GiB'),
  sizes: withSpec(
    'image: x\nmemory: 2GB\ndisk: 1.5GiB\nvolumes: [{name: a, size: 10Gi}, {name: b, size: much}]\nlimits: {diskBandwidth: 100, netBandwidth: 1000}',
  ),
  'wrong-types': withSpec('image: [x]\ncpus: "2"\npower: off\nvolumes: data\nhardware: {tpm: "yes"}\nshutdown: 90'),
  'nothing-there': withSpec('image:\nmemory:\nvolumes:\nshutdown:'),
  'unknown-fields': `${withSpec('image: x\ncpu: 2\nmemmory: 1GiB\nzzz: 1\nexposures: [{hostport: 80, guestPort: 80}]')}sepc: {}\n`,
  'not-ours': 'apiVersion: v1\nkind: Pod\nmetadata: {name: web-1}\nspec: {containers: []}\n',
  names: withSpec('image: x\nvolumes: [{name: ../x, size: 1}]\nhostname: web_1').replace('web-1', 'Web/1'),
  'image-urls': withSpec('image: {url: "ftp://example.org/a.img"}'),
  'image-password': withSpec('image: {url: "https://me:secret@example.org/a.img"}'),
  'image-path': withSpec('image: /images/a.img'),
  'image-file': withSpec('image: {url: "file://host/a.img"}'),
  'image-digests': withSpec(`image: {url: "https://example.org/a", sha256: ${HEX.slice(2)}, sha512: "sha512:${HEX}"}`),
  'image-two-digests': withSpec(`image: {url: "https://example.org/a", sha256: ${HEX}, sha512: ${HEX}${HEX}}`),
  networks: withSpec('image: x\nnetworks: [{name: nat}]'),
  'two-networks': withSpec('image: x\nnetworks: [{name: a}, {name: b}]'),
  ports: withSpec(
    'image: x\nexposures: [{hostPort: 67, guestPort: 67}, {hostPort: 70000, guestPort: 0}, {hostPort: 80}, {hostPort: 81, guestPort: 81, protocol: TCP, hostAddress: localhost}]',
  ),
  'ports-twice': withSpec(
    'image: x\nexposures: [{hostPort: 80, guestPort: 80}, {hostPort: 80, guestPort: 81, hostAddress: 127.0.0.1}, {hostPort: 80, guestPort: 1, protocol: udp}, {hostPort: 80, guestPort: 1, hostAddress: "::1"}]',
  ),
  keys: withSpec(
    `image: x\nsshKeys:\n- ssh-ed25519 AAAAC3Nz\n- "${KEY}\\n${KEY}"\n- ~/.ssh/id_ed25519.pub\n- ssh-rsa ${blob('ssh-ed25519')}\n- "-----BEGIN OPENSSH PRIVATE KEY-----\\nsecret"`,
  ),
  'user-data-twice': withSpec('image: x\nuserData: "#cloud-config"\nuserDataFile: web.cfg'),
  'user-data-map': withSpec('image: x\nuserData: {password: secret}'),
  'volumes-twice': withSpec('image: x\nvolumes: [{name: a, size: 1}, {name: b, size: 1}, {name: a, size: 1}]'),
  'label-names': withSpec('image: x').replace('{name: web-1}', '{name: web-1, labels: {"a\\tb": x}}'),
  labels: withSpec('image: x').replace('{name: web-1}', '{name: web-1, labels: {version: 2, "a\\tb": x}}'),
  affinity: withSpec('image: x\ncpus: 2\nhardware: {cpuAffinity: {2: [1], x: [1], 0: []}}'),
};

describe('a manifest that is refused', () => {
  it.each(Object.entries(REFUSED))('says what to mend: %s', async (name, text) => {
    const lines = linesOf(parse(text));
    expect(lines).not.toContain('secret');
    await expect(lines).toMatchFileSnapshot(`../../golden/manifest/${name}.txt`);
  });

  it.each([null, 'x', 1, [], true])('is %j, which is no map', (value) => {
    expect(linesOf(value)).toMatch(/map of apiVersion, kind, metadata and spec/);
  });

  it('keeps its name where that is legible, so that its VM is known to be meant', () => {
    expect(manifestName(parse(withSpec('cpus: 0')))).toBe('web-1');
    expect(manifestName({ metadata: { name: '../x' } })).toBeUndefined();
    expect(manifestName(undefined)).toBeUndefined();
  });

  it.each(['a/b', '../x', '..', '', '-a', 'A', 'a'.repeat(64), 'a\n', 'ä', 7])('is named %j', (name) => {
    const value = { apiVersion: 'eitri/v1', kind: 'VirtualMachine', metadata: { name }, spec: { image: 'x' } };
    expect(linesOf(value)).toMatch(/^metadata\.name: .* is not a name: write 1 to 63/);
  });

  it('names userDataFile where no folder stands beside it', () => {
    const parsed = parseManifest(parse(withSpec('image: x\nuserDataFile: a')));
    expect(parsed.ok ? [] : parsed.issues.map(issueLine)).toEqual([
      'spec.userDataFile: works only in a folder of manifests: put the text itself under userData',
    ]);
  });
});

describe('whatever is thrown at it', () => {
  const anything = fc.anything({ withBigInt: true, withNullPrototype: true, maxDepth: 4 });
  const nearly = fc.record(
    {
      apiVersion: fc.constant('eitri/v1'),
      kind: fc.constant('VirtualMachine'),
      metadata: fc.record({ name: fc.constantFrom('web-1', 'a') }),
      spec: fc.dictionary(
        fc.constantFrom(
          'image',
          'cpus',
          'memory',
          'disk',
          'volumes',
          'exposures',
          'sshKeys',
          'hardware',
          'limits',
          'x',
        ),
        fc.oneof(anything, fc.constantFrom('x', 1, '1GiB', 20)),
      ),
    },
    { requiredKeys: ['apiVersion', 'kind', 'metadata', 'spec'] },
  );

  it('it answers with a spec that the wire’s schema knows, or with issues that have a path and a message', () => {
    fc.assert(
      fc.property(fc.oneof(anything, nearly), (value) => {
        const parsed = parseManifest(value);
        if (parsed.ok) expect(vmSpecSchema.parse(JSON.parse(JSON.stringify(parsed.spec)))).toEqual(parsed.spec);
        else {
          expect(parsed.issues.length).toBeGreaterThan(0);
          for (const issue of parsed.issues) expect(issue.message).toMatch(/\S/);
        }
      }),
      { numRuns: 500 },
    );
  });
});
