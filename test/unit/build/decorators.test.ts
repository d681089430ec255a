import { container, inject, injectable } from 'tsyringe';
import { describe, expect, it } from 'vitest';

const GREETING = Symbol.for('eitri.test.greeting@1');

@injectable()
class Greeter {
  constructor(@inject(GREETING) readonly greeting: string) {}
}

describe('legacy decorators without emitted metadata', () => {
  it('an explicit @inject on a parameter is enough to resolve', () => {
    const child = container.createChildContainer();
    child.register(GREETING, { useValue: 'hello' });
    expect(child.resolve(Greeter).greeting).toBe('hello');
  });
});
