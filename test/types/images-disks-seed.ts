/** The rooms that make images, disks and seeds are pinned to their contracts, exactly. */
import type { Expect, Pin } from '@eitri/conformance';
import type { DiskService, ImageSource, SeedSource } from '@eitri/core/contracts';
import type { HostDiskService } from '../../src/disks/index.js';
import type { ImageCache } from '../../src/images/index.js';
import type { NoCloudSeedSource } from '../../src/seed/index.js';

export type Kept = [
  Expect<Pin<DiskService, HostDiskService>>,
  Expect<Pin<ImageSource, ImageCache>>,
  Expect<Pin<SeedSource, NoCloudSeedSource>>,
];
