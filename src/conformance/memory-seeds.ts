/**
 * Seeds in the files of a `FakeHost`: what would be in the volume, as stable JSON.
 */
import type { BuiltSeed, SeedRequest, SeedSource } from '@eitri/core/contracts';
import { permanent, shortHash, stableJson } from '@eitri/core/kit';
import type { CallLog } from './call-log.js';
import type { FakeHost } from './fake-host.js';

/** What a `MemorySeeds` is joined to. */
export interface MemorySeedsOptions {
  readonly host: FakeHost;
  readonly calls?: CallLog;
}

/** A `SeedSource` that builds files of a `FakeHost`: what a seed would say, as stable JSON. */
export class MemorySeeds implements SeedSource {
  readonly calls: CallLog;

  constructor(private readonly options: MemorySeedsOptions) {
    this.calls = options.calls ?? options.host.calls;
  }

  readonly build = (request: SeedRequest, signal: AbortSignal): Promise<BuiltSeed> =>
    this.calls.around('seedSource.build', request.uid, () => {
      signal.throwIfAborted();
      const { userData } = request.spec;
      if (userData !== undefined && !userData.startsWith('#')) {
        throw permanent('user-data is neither #cloud-config nor a script', { code: 'SpecInvalid' });
      }
      const { host } = this.options;
      const content = stableJson({ ...request, instanceId: request.uid });
      // Rebuilt by rename under the same path; a seed that did not change is left alone.
      if (host.files.get(request.path)?.content !== content) {
        host.remove(request.path);
        host.writeFile(request.path, content);
      }
      return { hostKeys: [`ssh-ed25519 ${shortHash(`host key ${request.uid}`, 40)}`] };
    });
}
