/** How events are added up, by type and by reason, over whatever time. */

export interface Rates {
  readonly received: number;
  readonly processed: number;
  readonly ignored: number;
}

export interface TypeRates extends Rates {
  readonly endpoint: string;
  readonly type: string;
}

export interface ReasonCount {
  readonly reason: string;
  readonly events: number;
}

export type Writable<T> = { -readonly [K in keyof T]: T[K] };

export const NOTHING = { received: 0, processed: 0, ignored: 0 } as const satisfies Rates;

/** What the map has there, or has from now on. */
export function ensured<K, V>(map: Map<K, V>, key: K, first: V): V {
  const known = map.get(key) ?? first;
  map.set(key, known);
  return known;
}

export function busiestFirst(types: Iterable<TypeRates>): readonly TypeRates[] {
  return [...types].toSorted((a, b) => b.received - a.received);
}

export class Reasons {
  readonly #events = new Map<string, number>();

  add(reason: string, events: number): void {
    this.#events.set(reason, (this.#events.get(reason) ?? 0) + events);
  }

  commonestFirst(): readonly ReasonCount[] {
    const all = [...this.#events].map(([reason, events]) => ({ reason, events }));
    return all.toSorted((a, b) => b.events - a.events);
  }
}
