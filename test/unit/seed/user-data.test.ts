import { codeOf, isPermanent } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { inspectUserData, MAX_USER_DATA_BYTES } from '../../../src/seed/user-data.js';

const refusal = (userData: string): unknown => {
  try {
    return `accepted as ${inspectUserData(userData).form}`;
  } catch (error) {
    return error;
  }
};

describe('user-data', () => {
  it.each([
    [undefined, 'none'],
    ['', 'none'],
    [' \n', 'none'],
    ['#cloud-config\npackages: [nginx]\n', 'cloud-config'],
    ['\n#cloud-config\n', 'cloud-config'],
    ['#cloud-config', 'cloud-config'],
    ['#!/bin/sh\necho hi\n', 'script'],
    ['#include\nhttps://example.org/x\n', 'include'],
    ['#include-once\nhttps://example.org/x\n', 'include'],
    ['#cloud-boothook\n#!/bin/sh\n', 'boothook'],
    ['#part-handler\n', 'part-handler'],
    ['#cloud-config-archive\n- x\n', 'archive'],
    ['#cloud-config-jsonp\n[]\n', 'jsonp'],
    ['## template: jinja\n#cloud-config\na: {{ v1.region }}\n', 'jinja'],
    ['Content-Type: multipart/mixed; boundary="x"\nMIME-Version: 1.0\n\n--x--\n', 'mime'],
  ] as const)('%j is %s', (userData, form) => {
    expect(inspectUserData(userData).form).toBe(form);
  });

  it.each([
    ['a misspelt header', '#cloud-confg\nx: 1\n', /begin it with #cloud-config$/],
    ['a misspelt header that only begins right', '#cloud-configs\n', /does not know/],
    [
      'YAML without its header',
      'packages: [nginx]\n',
      /begins with a line that cloud-init does not know: begin it with #cloud-config or #!/,
    ],
    ['a MIME part without its version', 'Content-Type: text/plain\n\nhi\n', /does not know/],
    ['a script behind a blank line', '\n#!/bin/sh\n', /blanks before its #!/],
    ['a byte order mark', '\uFEFF#cloud-config\n', /byte order mark/],
    ['a broken YAML', '#cloud-config\na: [1\nb: 2\n', /no YAML: .* line \d/],
    ['a list', '#cloud-config\n- a\n', /not a mapping/],
    ['too much', `#!/bin/sh\n#${'x'.repeat(MAX_USER_DATA_BYTES)}`, /more than 1048576/],
  ])('with %s is refused for good, with what to do', (_what, userData, message) => {
    const error = refusal(userData);
    expect(String(error)).toMatch(message);
    expect(isPermanent(error)).toBe(true);
    expect(codeOf(error)).toBe('SpecInvalid');
  });

  it.each([
    ['#cloud-config\nssh_keys: {ed25519_private: x}\n', true],
    ['#cloud-config\nvendor_data: {enabled: false}\n', true],
    ['#cloud-config\nvendor_data: {enabled: true}\nssh_authorized_keys: [x]\n', false],
    ['#cloud-config\n', false],
    ['#!/bin/sh\n# ssh_keys: none\n', false],
  ])('%j takes the host keys out of our hands: %s', (userData, overrides) => {
    expect(inspectUserData(userData).overridesHostKeys).toBe(overrides);
  });
});
