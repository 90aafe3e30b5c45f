/**
 * The proof, proved: Workers that lose and double payments, or what follows from them, through the
 * very same crash points. Each must be found out, at every place where it is to be and nowhere else, or the proof would not
 * see such a thing in the product either.
 */
import {
  atAnyWrite,
  beforeTheCallIsRecorded,
  betweenMarkAndSend,
  betweenMarkAndWork,
  betweenWorkAndMark,
  type MustShow,
  whileTheRowIsLocked,
} from "./control-places.ts";
import { controlSection } from "./control-report.ts";
import {
  type CrashPointOptions,
  type PathReport,
  proveCrashPoints,
  type Way,
} from "../crash/crash-points.ts";
import { delivery } from "../stage/deliveries.ts";
import { dispatchPath, type Path, queuePath, WORKERS } from "../crash/paths.ts";
import type { Section } from "../report.ts";
import type { Delivery, Stage } from "../stage/stage.ts";
import type { Failure } from "../workers/receiver.ts";

export interface Control {
  /** One event on its way through a broken Worker, or one message. */
  readonly path: Path;
  readonly finds: "lost" | "doubled";
  readonly ways: readonly Way[];
  /** Null: it shows without any disturbance. */
  readonly mustShow: MustShow | null;
}

type Options = Pick<CrashPointOptions, "every">;

/** They wait for the answer to each statement, so that it can be told what Postgres has acted on. */
const STEPWISE = { PIPELINE: "off" } as const;

/** For the stage. The product's own receiver says what should become of each event. */
export const CONTROL_WORKERS = {
  receiver: WORKERS.receiver,
  sending: WORKERS.sending,
  controls: { entry: "test/proof/workers/controls.ts" },
  "sends-late": { entry: "test/proof/workers/sends-late.ts", vars: STEPWISE, sends: true },
  "acks-first": { entry: "test/proof/workers/acks-first.ts", vars: STEPWISE },
} as const;

/** All but a restart of Postgres, which takes long and leaves what a terminated backend leaves. */
const WAYS: readonly Way[] = [
  "cut before",
  "cut half",
  "cut after",
  "kill the Worker",
  "terminate the backend",
  "refuse the statement",
];

const UNSENDABLE: Failure = { how: "parameter", attempts: 1 };

export const CONTROLS: readonly Control[] = [
  { path: through("mark-first"), finds: "lost", ways: WAYS, mustShow: betweenMarkAndWork },
  { path: through("work-first"), finds: "doubled", ways: WAYS, mustShow: betweenWorkAndMark },
  {
    path: through("believes-commit"),
    finds: "lost",
    ways: ["refuse the statement"],
    mustShow: atAnyWrite,
  },
  { path: through("queues-commit", UNSENDABLE), finds: "lost", ways: [], mustShow: null },
  {
    path: { ...through("timeout-is-duplicate"), meets: to("timeout-is-duplicate") },
    finds: "lost",
    ways: ["cut before", "cut after", "terminate the backend"],
    mustShow: whileTheRowIsLocked,
  },
  {
    path: { ...dispatchPath("sends late", "sends-late"), expected: dispatchPath("the product") },
    finds: "lost",
    ways: WAYS,
    mustShow: betweenMarkAndSend,
  },
  {
    path: { ...queuePath("acks first", 1, "acks-first"), expected: queuePath("the product", 1) },
    finds: "lost",
    ways: WAYS,
    mustShow: beforeTheCallIsRecorded,
  },
];

function through(receiver: string, failure?: Failure): Path {
  return {
    name: receiver.replaceAll("-", " "),
    deliveries: [to(receiver, failure)],
    expected: { name: "the product", deliveries: [delivery(failure ? { failure } : {})] },
  };
}

function to(receiver: string, failure?: Failure): Delivery {
  return delivery({ worker: "controls", endpoint: receiver, ...(failure ? { failure } : {}) });
}

export async function proveControls(stage: Stage, options: Options = {}): Promise<Section> {
  const proved: { readonly control: Control; readonly report: PathReport }[] = [];
  for (const control of CONTROLS) {
    proved.push({ control, report: await proveControl(stage, control, options) });
  }
  return controlSection(proved);
}

/** @param options `every` holds where there are more runs than a few. */
export function proveControl(
  stage: Stage,
  { path, ways, mustShow }: Control,
  { every = 1 }: Options = {},
): Promise<PathReport> {
  return proveCrashPoints(stage, path, {
    ways,
    every: ways.length > 1 ? every : 1,
    ...(mustShow ? { mustShow } : {}),
  });
}
