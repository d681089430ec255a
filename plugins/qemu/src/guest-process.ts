/**
 * The process of one guest, as the supervisor knows it: found again by its pidfile, or by the one argument that only it
 * has. Needs nothing but paths, so an agent that was restarted finds what the one before it started.
 */
import type { BackendHost, ProcessRef, ProcessSignal, ProcessState, VmPaths } from '@eitri/core/contracts';
import { identityOption } from './arguments.js';
import { qmpSocketOf } from './guest-files.js';
import { binaryName, findExecutable } from './installation.js';

export class GuestProcesses {
  private executable: Promise<string> | undefined;

  constructor(private readonly host: BackendHost) {}

  readonly refOf = async (paths: VmPaths): Promise<ProcessRef> => ({
    pidFile: paths.pidFile,
    identity: { executable: await this.executableName(), ...identityOption(qmpSocketOf(paths)) },
  });

  readonly observe = async (paths: VmPaths, signal: AbortSignal): Promise<ProcessState> =>
    this.host.supervisor.observe(await this.refOf(paths), signal);

  readonly signal = async (paths: VmPaths, name: ProcessSignal): Promise<'sent' | 'gone'> =>
    this.host.supervisor.signal(await this.refOf(paths), name);

  readonly waitGone = async (paths: VmPaths, timeoutMs: number, signal: AbortSignal): Promise<boolean> =>
    this.host.supervisor.waitGone(await this.refOf(paths), timeoutMs, signal);

  readonly forget = async (paths: VmPaths): Promise<void> => this.host.supervisor.forget(await this.refOf(paths));

  /**
   * Guests may run on while their QEMU is being replaced or was removed: then its bare name has to do, and the pidfile
   * tells whose the process is. Only a path that was found is remembered.
   */
  private async executableName(): Promise<string> {
    this.executable ??= this.lookUp();
    const found = await this.executable;
    if (!found.startsWith('/')) this.executable = undefined;
    return found;
  }

  private async lookUp(): Promise<string> {
    try {
      return (await findExecutable(this.host)) ?? binaryName(this.host.facts.arch);
    } catch {
      return binaryName(this.host.facts.arch);
    }
  }
}
