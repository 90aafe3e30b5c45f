/**
 * One Worker on trial: inputs are sent to it, and what it answers and what it leaves in the database
 * are held against what must come of them.
 */
import { invoiceEvent } from "../../local/events.ts";
import { invoiceFacts } from "./bodies.ts";
import type { Conversation, InputClass } from "./corpus.ts";
import type { Input, SecretOf } from "./input.ts";
import type { Expected } from "./judge.ts";
import type { Problem, Tally } from "./tally.ts";
import { exchange, PROMISED_MS, type Reply } from "./wire.ts";
import type { Stage } from "../stage/stage.ts";

/** Each row of the inbox in the parts that the judge has, and each payment. */
const FOUND = `
  select json_build_array(endpoint, event_id, event_type, case
      when parked_at is not null then 'needs_review'
      when outcome = 'ignored' then 'ignored: ' || ignored_reason
      else coalesce(outcome, 'waiting') end) as found
  from webhook_inbox where length(payload::text) > 0
  union all select to_json('a payment'::text) from ledger_entries`;

const PAYMENT = JSON.stringify("a payment");

export class Trial {
  /** The most memory that the process was seen to have, after an answer. */
  mostBytes = 0;
  readonly #stage: Stage;
  readonly #worker: string;
  readonly #url: URL;
  readonly #secretOf: SecretOf;
  readonly #pid: number;

  private constructor(stage: Stage, worker: string, url: URL, secretOf: SecretOf) {
    this.#stage = stage;
    this.#worker = worker;
    this.#url = url;
    this.#secretOf = secretOf;
    this.#pid = stage.workerd.pid();
  }

  static async of(stage: Stage, worker: string): Promise<Trial> {
    const billing = await stage.endpoint(worker, "billing");
    const connect = await stage.endpoint(worker, "connect");
    await stage.clear();
    return new Trial(stage, worker, new URL(billing.url), (where) =>
      where === "connect" ? connect.secret : billing.secret,
    );
  }

  /** Everything of a class, until the Worker is no more. */
  async hold({ conversations, together = 1 }: InputClass, tally: Tally): Promise<void> {
    if (together === 1) {
      for (const conversation of conversations) {
        tally.problems.push(...(await this.try(conversation, tally)));
        if (tally.crashes > 0) return;
      }
    } else tally.problems.push(...(await this.#tryTogether(conversations, together, tally)));
    await this.check(tally);
  }

  /** Whether the Worker is as before, with nothing left of what was. */
  async check(tally: Tally): Promise<void> {
    tally.problems.push(...(await this.#askHowItIs(tally)));
  }

  /** One conversation, with an empty database. */
  async try(conversation: Conversation, tally: Tally): Promise<Problem[]> {
    const { expected, problems } = await this.#converse(conversation, tally);
    // What is stored first is processed behind the answer.
    if (expected.some(({ row }) => row?.startsWith('["later"'))) await this.#stage.quiet();
    const name = conversation.map((input) => input.name).join(" + ");
    problems.push(...(await this.#compareRows(name, expected, tally)));
    const unheardOf = problems.some(({ what }) => what === "answer");
    return unheardOf ? [...problems, ...(await this.#askHowItIs(tally))] : problems;
  }

  async #tryTogether(
    conversations: readonly Conversation[],
    together: number,
    tally: Tally,
  ): Promise<Problem[]> {
    const waiting = [...conversations];
    const expected: Expected[] = [];
    const problems: Problem[] = [];
    const takeTurns = async (): Promise<void> => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const ended = await this.#converse(next, tally);
        expected.push(...ended.expected);
        problems.push(...ended.problems);
      }
    };
    await Promise.all(Array.from({ length: together }, takeTurns));
    return [...problems, ...(await this.#compareRows("all of them", expected, tally))];
  }

  async #converse(
    conversation: Conversation,
    tally: Tally,
  ): Promise<{ expected: Expected[]; problems: Problem[] }> {
    const prepared = await Promise.all(conversation.map(({ prepare }) => prepare(this.#secretOf)));
    const steps = prepared.flatMap((one) => one.steps);
    const exchanged = await exchange(this.#url, steps, conversation.length);
    tally.hear(exchanged);
    this.mostBytes = Math.max(this.mostBytes, (await this.#stage.workerd.residentBytes()) ?? 0);
    const expected = prepared.map((one) => one.expected);
    const problems = exchanged.replies.flatMap((reply, index) =>
      compareAnswer(conversation[index], expected[index], reply),
    );
    return { expected, problems };
  }

  async #compareRows(
    name: string,
    expected: readonly Expected[],
    tally: Tally,
  ): Promise<Problem[]> {
    const found = (await this.#stage.rows(FOUND)).map((row) => JSON.stringify(row["found"]));
    const rows = found.filter((one) => one !== PAYMENT);
    tally.rows += rows.length;
    if (found.length > 0) await this.#stage.clear();
    const wanted = expected.flatMap(({ row, booked }) => [
      ...(row === undefined ? [] : [row]),
      ...(booked ? [PAYMENT] : []),
    ]);
    return difference(wanted, found).map((text) => ({ what: "rows", text: `${name}: ${text}` }));
  }

  /** The same process, and a Worker in it that does its work. */
  async #askHowItIs(tally: Tally): Promise<Problem[]> {
    await this.#stage.quiet();
    const problems = await this.#compareRows("afterwards", [], tally);
    const healthz = await fetch(new URL("/healthz", this.#url), {
      signal: AbortSignal.timeout(PROMISED_MS),
    }).catch(() => null);
    const { outcome } = await this.#stage.deliver({
      worker: this.#worker,
      endpoint: "billing",
      event: invoiceEvent("invoice.paid", invoiceFacts("paid"), {
        id: "evt_normal",
        apiVersion: "2026-10-28.endive",
      }),
    });
    await this.#stage.clear();
    if (healthz?.status === 200 && outcome === "processed" && exists(this.#pid)) return problems;
    tally.crashes += 1;
    const text = `${this.#worker} is not what it was: healthz ${healthz?.status}, ${outcome}`;
    return [...problems, { what: "crash", text }];
  }
}

function compareAnswer(
  input: Input | undefined,
  { statuses = [], text }: Partial<Expected> = {},
  reply: Reply,
): Problem[] {
  const said = typeof reply.status !== "number" || text === undefined || reply.text === text;
  if (statuses.includes(reply.status) && said) return [];
  const wanted = `${statuses.join(" or ")} ${text ?? ""}`.trim();
  const got = `${reply.status} ${reply.text.slice(0, 200)}`.trim();
  return [{ what: "answer", text: `${input?.name}: expected ${wanted}, got ${got}` }];
}

/** What is missing, and what is there and should not be; each as often as that is so. */
function difference(expected: readonly string[], found: readonly string[]): string[] {
  const left = [...found];
  const missing = expected.filter((one) => {
    const index = left.indexOf(one);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
  return [...missing.map((one) => `no ${one}`), ...left.map((one) => `unexpected: ${one}`)];
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
