/** What can be read of a guide: its blocks of code, and its table of slips. */

export interface Block {
  /** As its first line says; empty: it says none. */
  readonly path: string;
  readonly code: string;
  /** Where it stands in the guide. */
  readonly line: number;
}

export function blocksOf(guide: string): readonly Block[] {
  return [...guide.matchAll(/^```ts\n(?:\/\/ (\S+\.ts)\n)?(.*?)\n```$/gms)].map((found) => ({
    path: found[1] ?? "",
    code: found[2] ?? "",
    line: guide.slice(0, found.index).split("\n").length,
  }));
}

export interface Slip {
  readonly slip: string;
  /** Where it stands in a clone. */
  readonly path: string;
  readonly source: string;
  /** What somebody says to it. */
  readonly told: string;
}

/** What the code of a slip may name, and where that comes from. */
const NAMES: Readonly<Record<string, string>> = {
  bookCreditNote: 'import { bookCreditNote } from "../handlers.ts";',
  bookRefund: 'import { bookRefund } from "../handlers.ts";',
  chargeRefunds: 'import { chargeRefunds } from "../schema.ts";',
  connect: 'import { connect } from "../../db/connect.ts";',
  drizzle: 'import { drizzle } from "drizzle-orm/node-postgres";',
  db: 'import type { NodePgDatabase } from "drizzle-orm/node-postgres";\ndeclare const db: NodePgDatabase;',
  database:
    'import type { Database } from "../../db/connect.ts";\ndeclare const database: Database;',
  url: "declare const url: string;",
  fromSomewhere:
    'import type { Stripe } from "stripe";\ndeclare const fromSomewhere: Stripe.ChargeRefundedEvent;',
};

/** Of a table with the columns: a slip, an entry of a HandlerTable, a message. */
export function slipsOf(guide: string): readonly Slip[] {
  const rows = guide.matchAll(/^\| ([^|]+?) +\| `(.+?)` +\| `(.+?)` +\|$/gm);
  return [...rows].flatMap(([, slip = "", entry = "", told = ""]) => {
    if (!entry.startsWith('"')) return [];
    const named = Object.keys(NAMES).filter((name) => new RegExp(`\\b${name}\\b`).test(entry));
    const source = [
      'import type { HandlerTable } from "../../inbox/handler.ts";',
      ...named.map((name) => NAMES[name]),
      `export const handlers: HandlerTable = {\n  ${entry},\n};\n`,
    ];
    const path = `src/refunds/slips/${slip.replaceAll(/\W+/g, "-")}.ts`;
    return [{ slip, path, source: source.join("\n"), told: told.replaceAll("\\|", "|") }];
  });
}
