/**
 * The load: so many connections that stay open, each of which posts the next event as soon as its
 * last one was answered. Events are made and signed before the clock starts.
 *
 * Not imitated: arrivals that do not wait for answers, TLS, Stripe's own connections.
 */
import { Agent, request } from "node:http";
import { signatureHeader } from "../../local/sign.ts";
import { AMOUNT, paidEvent } from "../waiting-events.ts";

/** Where a contestant answers, and what is known of the load that it got so far. */
export interface Target {
  readonly url: string;
  readonly secret: string;
  /** Of its events' ids: no other target has it. */
  readonly name: string;
  /** Every delivery that was answered, those of warm-ups too. */
  answered: number;
  /** Signed, to be posted. */
  readonly stock: Delivery[];
  signed: number;
}

interface Delivery {
  readonly body: Buffer;
  readonly signature: string;
}

export interface Slice {
  /** Within the time. */
  readonly perSecond: number;
  /** Those that were answered after the time, too. */
  readonly deliveries: number;
  readonly latenciesMs: readonly number[];
}

export function newTarget(name: string, url: string, secret: string): Target {
  return { name, url, secret, answered: 0, stock: [], signed: 0 };
}

/** A warm-up, and then the load; `atStart` is called between the two. */
export async function slice(
  target: Target,
  connections: number,
  { warmUpSeconds, seconds }: { readonly warmUpSeconds: number; readonly seconds: number },
  atStart: () => void = () => undefined,
): Promise<Slice> {
  const warmUp = await load(target, connections, warmUpSeconds);
  const wanted = Math.ceil(warmUp.perSecond * seconds * STOCK_MARGIN) + connections;
  while (target.stock.length < wanted) target.stock.push(await sign(target));
  atStart();
  return load(target, connections, seconds);
}

/** It gets faster behind its warm-up; what is missing is signed on the way. */
const STOCK_MARGIN = 1.3;

/** For so long; what is not signed yet is signed on the way. */
export async function load(target: Target, connections: number, seconds: number): Promise<Slice> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latenciesMs: number[] = [];
  let inTime = 0;
  const endsAt = performance.now() + seconds * 1_000;
  const post = async (): Promise<void> => {
    for (;;) {
      const delivery = target.stock.pop() ?? (await sign(target));
      const sentAt = performance.now();
      if (sentAt > endsAt) {
        target.stock.push(delivery);
        return;
      }
      await postOne(agent, target, delivery);
      const answeredAt = performance.now();
      latenciesMs.push(answeredAt - sentAt);
      if (answeredAt <= endsAt) inTime += 1;
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, post));
  } finally {
    agent.destroy();
  }
  target.answered += latenciesMs.length;
  return { perSecond: inTime / seconds, deliveries: latenciesMs.length, latenciesMs };
}

/** @throws unless the event was processed. */
function postOne(
  agent: Agent,
  { url, name }: Target,
  { body, signature }: Delivery,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "content-length": body.length,
    "stripe-signature": signature,
  };
  const posted = request(url, { method: "POST", agent, headers }, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (text += chunk));
    response.on("error", reject);
    response.on("end", () => {
      const processed = response.statusCode === 200 && text.includes('"outcome":"processed"');
      if (processed) resolve();
      else reject(new Error(`${name} answered with ${response.statusCode}: ${text}`));
    });
  });
  posted.on("error", reject);
  posted.end(body);
  return promise;
}

async function sign(target: Target): Promise<Delivery> {
  target.signed += 1;
  const body = JSON.stringify(paidEvent(`evt_${target.name}_${target.signed}`, AMOUNT));
  return { body: Buffer.from(body), signature: await signatureHeader(body, target.secret) };
}
