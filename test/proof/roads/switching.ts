/**
 * A deployment that is switched from one road to the other, and back, while Stripe delivers: those on
 * their way at that moment come to their end on the road that they were on, or are cut.
 */
import { isSuccess } from "../../local/deliver.ts";
import { delivery } from "../stage/deliveries.ts";
import { settle } from "../stage/settle.ts";
import type { Delivery, Stage } from "../stage/stage.ts";

export interface Switched {
  /** How many deliveries were on their way at each switch. */
  readonly underWay: readonly number[];
  /** How many events each Worker said that it had taken. */
  readonly taken: ReadonlyMap<string, number>;
}

export interface SwitchingOptions {
  /** What is deployed, one after the other; each for as many events. */
  readonly workers: readonly string[];
  readonly eventsEach: number;
  readonly senders: number;
}

/** Nobody is that unlucky. */
const MOST_ATTEMPTS = 50;
/** So many'th events come to the old deployment and to the new one at the same time. */
const TWICE = 5;

/** @returns once everything is settled. */
export async function switchRoads(
  stage: Stage,
  { workers, eventsEach, senders }: SwitchingOptions,
): Promise<Switched> {
  const taken = new Map<string, number>();
  const underWay: number[] = [];
  const cuts: Promise<unknown>[] = [];
  const unanswered: Delivery[] = [];
  let [deployed = ""] = workers;
  let [begun, open] = [0, 0];

  const send = async (one: Delivery): Promise<boolean> => {
    open += 1;
    const success = isSuccess(await stage.deliver(one));
    open -= 1;
    if (success) taken.set(one.worker, (taken.get(one.worker) ?? 0) + 1);
    return success;
  };
  const deploy = (worker: string): void => {
    underWay.push(open);
    deployed = worker;
    // Crons of the old one and of the new one overlap.
    cuts.push(stage.terminateBackends(), ...workers.map((each) => stage.tick(each)));
  };
  const sendAll = async (): Promise<void> => {
    while (begun < workers.length * eventsEach) {
      const n = ++begun;
      const next = workers[Math.floor((n - 1) / eventsEach)];
      if (next !== undefined && (n - 1) % eventsEach === 0 && n > 1) deploy(next);
      const endpoint = n % 2 === 0 ? "billing" : "later";
      const at = (worker: string): Delivery => delivery({ n, endpoint, worker });
      if (n % TWICE === 0) await Promise.all([...new Set(workers)].map((each) => send(at(each))));
      let success = false;
      for (let attempt = 0; attempt < MOST_ATTEMPTS && !success; attempt++) {
        success = await send(at(deployed));
      }
      if (!success) unanswered.push(at(deployed));
    }
  };
  await Promise.all(Array.from({ length: senders }, sendAll));
  await Promise.all(cuts);
  await settle(stage, unanswered, { worker: deployed });
  await stage.quiet();
  return { underWay, taken };
}
