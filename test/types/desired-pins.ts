/** What stands behind the contracts of desired state and of local mode keeps them exactly. */
import type { Expect, Pin } from '@eitri/conformance';
import type { ControlPlane, DesiredHolds, DesiredStore, ManifestEditor } from '@eitri/core/contracts';
import type { LocalControlPlane } from '../../src/control/local/index.js';
import type { FileDesiredStore } from '../../src/desired/index.js';

export type Kept = [
  Expect<Pin<DesiredStore, FileDesiredStore>>,
  Expect<Pin<DesiredHolds, FileDesiredStore>>,
  Expect<Pin<ControlPlane, LocalControlPlane>>,
  Expect<Pin<ManifestEditor, LocalControlPlane>>,
];
