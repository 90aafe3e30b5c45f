/** What may be said of a fault: its class, and texts that are our own. */
import { InvalidSetting } from "./config.ts";
import { sqlStateOf, wordsOf } from "./db/postgres-errors.ts";
import { CannotConnect, DatabaseUnavailable } from "./db/unavailable.ts";
import { errorClass, type Fields } from "./log.ts";

export function explain(fault: unknown): Fields {
  if (fault instanceof InvalidSetting) {
    return { error: fault.name, setting: fault.setting, detail: fault.message };
  }
  const sqlstate = sqlStateOf(fault) ?? undefined;
  if (fault instanceof DatabaseUnavailable) {
    return { error: fault.name, detail: fault.message, sqlstate, todo: todoFor(fault, sqlstate) };
  }
  return { error: errorClass(fault), sqlstate, todo: TODOS[sqlstate ?? ""] };
}

function todoFor(fault: DatabaseUnavailable, sqlstate: string | undefined): string | undefined {
  if (fault instanceof CannotConnect && sqlstate === "XX000") return todoForProxy(wordsOf(fault));
  return TODOS[sqlstate ?? ""];
}

const CONNECTION_STRING = "the connection string (Hyperdrive's, or DATABASE_URL)";
const WRONG_PASSWORD = `The password is wrong: put it right in ${CONNECTION_STRING}.`;
const TOO_MANY = "Too many connections are open: go through a pooler, or let it have more of them.";

/** What keeps everything from working. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const TODOS: Readonly<Record<string, string>> = {
  "28P01": WRONG_PASSWORD,
  "28000": `This role may not connect: put it right in ${CONNECTION_STRING}.`,
  "3D000": `There is no such database: put its name right in ${CONNECTION_STRING}.`,
  "53300": TOO_MANY,
  "42P01": "This database lacks our tables: npm run db:migrate.",
  "25006": "This database is read-only: is it a replica?",
};

/**
 * Neon's proxy has one SQLSTATE for whatever it refuses, and tells it apart in words alone; what Postgres
 * refuses, it repeats. The first of these is meant.
 * https://github.com/neondatabase/neon/blob/main/proxy/src/error.rs and the errors that it is made of
 */
const PROXY_TODOS: readonly (readonly [words: RegExp, todo: string])[] = [
  [/password authentication failed/i, WRONG_PASSWORD],
  [
    /not allowed to connect|blocked network|VPC endpoint/i,
    "Neon's allow list keeps it out: a Worker has no address of its own, so let it be open to all.",
  ],
  [/quota|exceeded the limit/i, "A quota of Neon's is used up: look at the project's usage."],
  [/too many|connection slots|max_client_conn|acquire permit/i, TOO_MANY],
  [
    /startup parameter/i,
    `Neon's pooler takes no such options: take them out of ${CONNECTION_STRING}.`,
  ],
  [
    /endpoint.*(?:not be found|is disabled|not specified)|does not exist/i,
    `Neon has no such endpoint or database, or it is switched off: look at ${CONNECTION_STRING}.`,
  ],
];

function todoForProxy(words: string): string {
  const known = PROXY_TODOS.find(([pattern]) => pattern.test(words));
  return (
    known?.[1] ?? "What is in front of the database cannot connect to it; it passes, as a rule."
  );
}
