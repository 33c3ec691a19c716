import { Injectable } from 'core';

/** What has an area. */
export interface Shape<T> {
  area(scale: number): T;
  name: string;
}

export enum Mode {
  SOFT = 'soft',
  Hard,
}

type Reader = (path: string) => Promise<string>;

/**
 * A row of keys.
 */
@Injectable()
export abstract class Keyboard<T extends Key = Key> implements Shape<number> {
  private readonly size: number = 3;

  constructor(private readonly context: Context, protected mode?: Mode) {}

  hide(view: View): boolean;
  hide(view: View, flags: number): boolean;
  /** Hides the keyboard. */
  @log('hide')
  @Memo
  public async hide<V extends View>(view: V, flags?: number, ...rest: string[]): Promise<boolean> {
    // ask the system
    const manager = <Manager>system.getService<Manager>(Context.INPUT_METHOD);
    return manager.hide(view!.token as Token, flags ?? Flags.NONE);
  }

  abstract draw(): void;
  static of<K extends Key>(this: void, key: K): Keyboard<K> { return new Small<K>(key); }
  get rows(): readonly T[] { return []; }
  handler = (event: Event): void => this.fire(event, "now");
  private static async *walk(): AsyncGenerator<number> {}
}

/** Overloads. */
export function pick(key: string): string;
export function pick(key: number): number;
export function pick(key: any): any {
  const inner = <T,>(x: T): T => x;
  return inner(key);
}

export const größe = async (höhe: number): Promise<number> => höhe * FAKTOR;

export namespace Tools {
  export function trim(this: Window, text: string): asserts text is string { text.trim(); }
}

declare function external(x: number): void;
declare module 'other' {
  export function outside(): void;
}

const table: Record<string, Reader> = {
  async read(path) { return open(path); },
  close: (path) => done(path),
};

export default function (x: unknown) { return x; }
