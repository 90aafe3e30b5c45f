/**
 * A body that does not come to its end is the sender's fault: it is answered in time, without a
 * row and without a connection to the database, and is never reported as a fault of ours.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Answer, logLines, openTestbed, roadTo } from "./testbed.ts";

/** Nobody listens on port 1: whoever tries to connect is told so, and answers with a 503. */
const NOWHERE = roadTo("postgres://inbox:unheard@127.0.0.1:1/inbox");
const UNSIGNED = new TextEncoder().encode("{}");

interface Upload {
  readonly send: (bytes: Uint8Array) => void;
  readonly end: () => void;
  readonly breakOff: () => void;
  readonly isCancelled: () => boolean;
  /** What it was answered; null while it was not. */
  readonly answer: () => Answer | null;
  /** Lets everything happen that needs no more time than this. */
  readonly after: (ms: number) => Promise<void>;
}

async function upload(play: (upload: Upload) => Promise<void>): Promise<Record<string, unknown>[]> {
  const inbox = await openTestbed({ env: NOWHERE });
  return logLines(async () => {
    const sender = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>();
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => sender.resolve(controller),
      cancel: () => void (cancelled = true),
    });
    let answer: Answer | null = null;
    const answered = inbox.post("/webhooks/stripe", { body }).then((it) => (answer = it));
    const controller = await sender.promise;
    await play({
      send: (bytes) => controller.enqueue(bytes),
      end: () => controller.close(),
      breakOff: () => controller.error(new Error("The connection was lost: someone@example.test")),
      isCancelled: () => cancelled,
      answer: () => answer,
      after: async (ms) => void (await vi.advanceTimersByTimeAsync(ms)),
    });
    await answered;
  });
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const tooSlow = { level: "warn", message: "delivery", outcome: "too_slow", status: 408 };
const cutShort = {
  level: "warn",
  message: "delivery",
  outcome: "invalid",
  invalid: "body",
  detail: "cut short",
  status: 400,
};

describe("a body has five seconds, whatever it does in them", () => {
  test("408 for one that never begins", async () => {
    const lines = await upload(async ({ answer, after, isCancelled }) => {
      await after(4_999);
      expect(answer()).toBeNull();
      await after(1);
      expect(answer()).toMatchObject({ status: 408, text: '{"outcome":"too_slow"}' });
      expect(isCancelled()).toBe(true);
    });
    expect(lines).toMatchObject([tooSlow]);
  });

  test("408 for one that trickles", async () => {
    const lines = await upload(async ({ send, answer, after, isCancelled }) => {
      for (let second = 0; second < 4; second++) {
        send(UNSIGNED);
        await after(1_000);
      }
      expect(answer()).toBeNull();
      send(UNSIGNED);
      await after(1_000);
      expect(answer()).toMatchObject({ status: 408 });
      expect(isCancelled()).toBe(true);
    });
    expect(lines).toMatchObject([tooSlow]);
  });

  test("not for one that comes to its end just in time: that is read as ever", async () => {
    await upload(async ({ send, end, answer, after }) => {
      send(UNSIGNED);
      await after(4_999);
      end();
      await after(0);
      expect(answer()).toMatchObject({ status: 400, outcome: "invalid" });
      expect(vi.getTimerCount()).toBe(0);
    });
  });
});

describe("a body cut short is 400, and nobody's words are logged", () => {
  test.each([
    { after: "its head", sent: [] },
    { after: "a part of it", sent: [UNSIGNED] },
  ])("after $after", async ({ sent }) => {
    const lines = await upload(async ({ send, breakOff, answer, after }) => {
      for (const bytes of sent) send(bytes);
      await after(0);
      breakOff();
      await after(0);
      expect(answer()).toMatchObject({ status: 400, text: '{"outcome":"invalid"}' });
      expect(vi.getTimerCount()).toBe(0);
    });
    expect(lines).toMatchObject([cutShort]);
    expect(JSON.stringify(lines)).not.toContain("example");
  });
});
