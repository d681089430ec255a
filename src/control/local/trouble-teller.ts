/**
 * Tells the operator, as events, what changes between a control plane and the agent: each new trouble with what is
 * declared, each one that is gone, contact that was lost or found. A level in, edges out: whoever looks calls `tell` after
 * each look, and what was told already is not told again.
 */
import { isVmId } from '@eitri/core/kit';
import type { DesiredIssue, EventSink, NewEvent } from '@eitri/core/contracts';
import { lineText } from './manifest-text.js';

/** A `git checkout` gone wrong breaks thousands of files at once. */
const MAX_LINES = 20;

export class TroubleTeller {
  private known: ReadonlyMap<string, DesiredIssue> = new Map();
  private inContact = true;

  constructor(
    private readonly events: EventSink,
    /** `local folder /etc/eitri` */
    private readonly who: string,
  ) {}

  readonly tell = (inContact: boolean, issues: readonly DesiredIssue[]): void => {
    const now = new Map(issues.map((issue) => [lineText(issue.source, issue), issue]));
    const fresh = [...now].filter(([line]) => !this.known.has(line));
    const gone = [...this.known].filter(([line]) => !now.has(line));
    if (this.inContact && !inContact) {
      this.events.emit({
        type: 'control.contact.lost',
        level: 'warn',
        message: `no contact with ${this.who}: VMs stay as they are, and none is destroyed until it is back`,
      });
    }
    this.tellSome(fresh, 'desired.issue', 'warn', '');
    this.tellSome(gone, 'desired.issue.gone', 'info', 'no longer: ');
    if (!this.inContact && inContact) {
      const message = `contact with ${this.who} again`;
      this.events.emit({ type: 'control.contact.found', level: 'info', message });
    }
    this.known = now;
    this.inContact = inContact;
  };

  private tellSome(
    lines: readonly (readonly [string, DesiredIssue])[],
    type: string,
    level: NewEvent['level'],
    before: string,
  ): void {
    for (const [line, { id }] of lines.slice(0, MAX_LINES)) {
      const vm = id !== undefined && isVmId(id) && { id };
      this.events.emit({ type, level, message: `${before}${line}`, ...vm });
    }
    const more = lines.length - MAX_LINES;
    if (more > 0) this.events.emit({ type, level, message: `${before}${more} more: see "eitri-agent status"` });
  }
}
