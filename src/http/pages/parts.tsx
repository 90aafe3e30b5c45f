/** What pages are made of: times with their age, counts, states, tables, links to one event. */
import type { Child } from "hono/jsx";
import type { Count } from "../../db/rows.ts";
import type { Standing } from "../../operate/standings.ts";
import { span } from "../../operate/wording.ts";
import { hrefOf } from "./links.ts";
import type { Meaning } from "./meanings.ts";

/** In UTC, with the age beside it. */
export function Time({ at, age = true }: { at: Date | null; age?: boolean }) {
  if (at === null) return <span class="faint">never</span>;
  const text = at.toISOString();
  return (
    <span>
      <time datetime={text} class="nowrap">
        {`${text.slice(0, 10)} ${text.slice(11, 19)} UTC`}
      </time>
      {age && <span class="faint nowrap">{` (${ageOf(at)})`}</span>}
    </span>
  );
}

function ageOf(at: Date): string {
  const seconds = (Date.now() - at.getTime()) / 1_000;
  return seconds < -1 ? `in ${span(-seconds)}` : `${span(Math.max(0, seconds))} ago`;
}

export const isNone = ({ count, more }: Count): boolean => count === 0 && !more;

const STANDINGS = {
  well: { sign: "✓", word: "OK" },
  look: { sign: "●", word: "Look" },
  trouble: { sign: "▲", word: "Trouble" },
  off: { sign: "–", word: "No reading" },
} as const satisfies Record<Standing, { sign: string; word: string }>;

/** @param word another one than the standing's own. */
export function StandingWord({ standing, word }: { standing: Standing; word?: string }) {
  const known = STANDINGS[standing];
  return (
    <span class={`standing ${standing}`}>
      <span aria-hidden="true">{known.sign}</span> {word ?? known.word}
    </span>
  );
}

export function Note({ standing, children }: { standing: Standing; children?: Child }) {
  return (
    <div class={`note is-${standing}`} role={standing === "trouble" ? "alert" : "status"}>
      {children}
    </div>
  );
}

export function Nothing({ children }: { children?: Child }) {
  return <p class="faint">{children}</p>;
}

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => Child;
  readonly number?: boolean;
}

/** On a phone, each row becomes a block with its titles inside. */
export function Table<T>({
  caption,
  columns,
  items,
}: {
  caption: string;
  columns: readonly Column<T>[];
  items: readonly T[];
}) {
  return (
    <div class="scroll" role="region" aria-label={caption} tabindex={0}>
      <table class="stack">
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, number: isNumber }) => (
              <th scope="col" class={isNumber ? "number" : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr>
              {columns.map(({ title, cell, number: isNumber }) => (
                <td data-label={title} class={isNumber ? "number" : undefined}>
                  {cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [string, Child])[] }) {
  return (
    <dl>
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

export function Id({ id }: { id: string | null }) {
  return id === null ? <span class="faint">none</span> : <span class="id">{id}</span>;
}

export function EventLink({ endpoint, eventId }: { endpoint: string; eventId: string }) {
  return (
    <a class="id" href={hrefOf("/ops/event", { endpoint, event_id: eventId })}>
      {eventId}
    </a>
  );
}

/** An event, at whichever endpoint. */
export function AnyEventLink({ id }: { id: string | null }) {
  if (id === null) return <Id id={id} />;
  return (
    <a class="id" href={hrefOf("/ops/events", { event_id: id })}>
      {id}
    </a>
  );
}

/** All events that speak of an object. */
export function ObjectLink({ id }: { id: string | null }) {
  if (id === null) return <span class="faint">none</span>;
  return (
    <a class="id" href={hrefOf("/ops/events", { object_id: id })}>
      {id}
    </a>
  );
}

/** The way to the next page, and back to the first one. */
export function Pages({
  path,
  query,
  next,
}: {
  path: string;
  query: Readonly<Record<string, string>>;
  next: string | null;
}) {
  const { after, ...first } = query;
  return (
    <ul class="pages" aria-label="Further pages">
      {after !== undefined && (
        <li>
          <a href={hrefOf(path, first)}>To the first page</a>
        </li>
      )}
      {next !== null && (
        <li>
          <a rel="next" href={hrefOf(path, { ...first, after: next })}>
            Next page
          </a>
        </li>
      )}
    </ul>
  );
}

/** A code, and what it means. */
export function Reason({ reason, meaning }: { reason: string; meaning: Meaning }) {
  return (
    <>
      <strong class="id">{reason}</strong>
      <div>{meaning.means}</div>
      <div class="faint">{meaning.todo}</div>
    </>
  );
}

/** For those who read by ear, and meet a link without what stands around it. */
export function Away({ children }: { children?: Child }) {
  return <span class="away"> {children}</span>;
}
