/** The corpus, class by class: what is tried in every run, in this order. */
import { anEvent, fields, invoices, json, nesting, notEvents } from "./bodies.ts";
import { brokenHeads, methods, methodsOfNoWorker, otherHeaders, paths } from "./heads.ts";
import { type Body, fixed, forged, headOf, type Input, signed } from "./input.ts";
import type { Expected, Where } from "./judge.ts";
import { cutShort, framing, sizes, slow, tooLarge } from "./paces.ts";
import { signatures } from "./signatures.ts";
import { bulk, keys, lengths, numbers, unicode } from "./texts.ts";

/** What goes out on one connection, all of it before any of it is answered. */
export type Conversation = readonly Input[];

export interface InputClass {
  readonly name: string;
  readonly conversations: readonly Conversation[];
  /** Many, or heavy: a short proof takes only some of them. */
  readonly sampled?: true;
  /** How many at the same time; one by default, so that what it leaves behind is known to be its. */
  readonly together?: number;
}

const alone = (inputs: readonly Input[]): Conversation[] => inputs.map((input) => [input]);
const each = (bodies: readonly Body[], where?: Where): Conversation[] =>
  alone(bodies.map((body) => signed(body, where)));

const event = json("an event", anEvent());
/** One of many: no other has its ids. */
const nth = (n: number): Body =>
  json(`event ${n}`, anEvent({ id: `evt_hostile${n}` }, { id: `in_hostile${n}` }));

const all = [notEvents, nesting, keys, fields, invoices, unicode, numbers, lengths].flat();
const oneIn = <T>(n: number, many: readonly T[]): T[] => many.filter((_, index) => index % n === 0);

export const corpus: readonly InputClass[] = [
  { name: "methods", conversations: alone(methods) },
  { name: "methods that reach no Worker", conversations: alone(methodsOfNoWorker) },
  { name: "paths", conversations: alone(paths) },
  { name: "heads that are no HTTP", conversations: alone(brokenHeads) },
  { name: "signature headers", conversations: alone(signatures(event)) },
  { name: "other headers, signed", conversations: alone(otherHeaders(event)) },
  sampled("forged: one in three of those below", alone(oneIn(3, all).map(forged))),
  { name: "signed: no event", conversations: each(notEvents) },
  sampled("signed: nesting", each(nesting)),
  sampled("signed: keys", each(keys)),
  sampled("signed: fields of every type", each([...fields, ...invoices])),
  sampled("signed: Unicode", each(unicode)),
  sampled("signed: numbers", each(numbers)),
  sampled("signed: lengths", each(lengths)),
  sampled("signed: one in ten, stored first", each(oneIn(10, all), "later")),
  sampled("signed: one in ten, elsewhere", each(oneIn(10, all), "connect")),
  sampled("signed: small things in bulk", each(bulk)),
  sampled("sizes up to the limit", alone(sizes)),
  sampled("sizes beyond it", alone(tooLarge)),
  { name: "framing", conversations: alone(framing) },
  { name: "bodies cut short", conversations: alone(cutShort) },
  { name: "several on one connection", conversations: pipelined() },
  { name: "slow, all at once", conversations: alone(slow), together: slow.length },
  { name: "hostile and right mixed, 20 at a time", conversations: mixed(), together: 20 },
];

function sampled(name: string, conversations: readonly Conversation[]): InputClass {
  return { name, conversations, sampled: true };
}

/** What a receiver without scruples must be found out by. */
export const forTheControl: InputClass = {
  name: "",
  conversations: [
    ...alone([event, ...oneIn(3, notEvents)].map(forged)),
    ...each(oneIn(3, notEvents)),
  ],
};

const DUPLICATE: Expected = {
  statuses: [200],
  text: '{"outcome":"duplicate","event":"evt_hostile"}',
};

function pipelined(): Conversation[] {
  const open = { keepsOpen: true };
  const bad = json("no event", []);
  return [
    [signed(nth(1), "billing", open), signed(nth(2), "billing", open), signed(nth(3))],
    [signed(event, "billing", open), again(signed(event))],
    [signed(bad, "billing", open), signed(event, "billing", open), signed(bad)],
    [fixed("PUT", [headOf({ ...open, method: "PUT" })], { statuses: [405] }), signed(event)],
    Array.from({ length: 30 }, (_, n) => signed(nth(n), "billing", n < 29 ? open : {})),
    Array.from({ length: 100 }, (_, n) => signed(bad, "billing", n < 99 ? open : {})),
  ];
}

function again(input: Input): Input {
  const prepare: Input["prepare"] = async (secretOf) => {
    const { steps } = await input.prepare(secretOf);
    return { steps, expected: DUPLICATE };
  };
  return { name: `${input.name}, again`, prepare };
}

/** A right one behind every few of the others. */
function mixed(): Conversation[] {
  const hostile = [
    ...oneIn(4, all).map(forged),
    ...notEvents.map((body) => signed(body)),
    ...paths,
    ...cutShort,
    ...oneIn(4, tooLarge),
  ];
  return alone(hostile.flatMap((input, n) => (n % 10 === 0 ? [input, signed(nth(n))] : [input])));
}
