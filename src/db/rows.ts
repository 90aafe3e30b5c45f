/** What a row's columns hold, checked where it is read. */
import { type SQL, sql } from "drizzle-orm";
import type { Row } from "./connect.ts";

/**
 * Counts stop there. So many entries of an index are read in a tenth of the time that a figure may
 * take, and in most of it where each has to be looked up in the table.
 */
export const MOST_COUNTED = 20_000;

/** How many there are; `more`: there are more than that. */
export interface Count {
  readonly count: number;
  readonly more: boolean;
}

/** Of a statement that stopped behind `most`. */
export function toCount(value: unknown, most = MOST_COUNTED): Count {
  const count = Number(value);
  return { count: Math.min(count, most), more: count > most };
}

export const textOf = (row: Row, column: string): string => String(row[column]);

export function textOrNull(row: Row, column: string): string | null {
  const value = row[column];
  return typeof value === "string" ? value : null;
}

export const numberOf = (row: Row, column: string): number => Number(row[column]);

export function numberOrNull(row: Row | undefined, column: string): number | null {
  const value = row?.[column];
  return typeof value === "number" ? value : null;
}

export function timeOf(row: Row, column: string): Date {
  const value = row[column];
  return value instanceof Date ? value : new Date(String(value));
}

export function timeOrNull(row: Row, column: string): Date | null {
  const value = row[column];
  return value instanceof Date ? value : null;
}

/** A time with every digit that Postgres has of it, which a Date has not. */
export function exactly(time: SQL): SQL {
  return sql`to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}
