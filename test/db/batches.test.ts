/** Batch after batch, as far as was agreed. */
import { expect, test } from "vitest";
import { type Done, inBatches } from "../../src/operate/actions.ts";

const NEVER = (fault: unknown): never => {
  throw fault;
};

/** So many are there to be taken, at most 5 at a time; each batch has the next record. */
function heap(size: number, failsAt = Infinity) {
  const asked: number[] = [];
  const take = (most: number): Promise<Done> => {
    asked.push(most);
    if (asked.length === failsAt) return Promise.reject(new Error("55P03"));
    const affected = Math.min(most, size, 5);
    size -= affected;
    const id = 100 + asked.length;
    return Promise.resolve({ affected, records: affected > 0 ? [id, id] : null, subject: "heap" });
  };
  return { asked, take };
}

test("never more is taken than was agreed to, and all of it if it is there", async () => {
  const { asked, take } = heap(100);
  const done = await inBatches(12, () => true, take, NEVER);
  expect(done).toEqual({ affected: 12, records: [101, 103], subject: "heap" });
  expect(asked).toEqual([12, 7, 2]);
});

test("it ends when nothing is left", async () => {
  const { take } = heap(7);
  expect(await inBatches(12, () => true, take, NEVER)).toMatchObject({
    affected: 7,
    records: [101, 102],
  });
  expect(await inBatches(12, () => true, heap(0).take, NEVER)).toMatchObject({
    affected: 0,
    records: null,
  });
});

test("it ends when the time is over, but not before the first batch", async () => {
  const { take } = heap(100);
  expect(await inBatches(12, () => false, take, NEVER)).toMatchObject({ affected: 5 });
});

test("what was done before one failed stays done, and is told with the fault", async () => {
  const faults: unknown[] = [];
  const { take } = heap(100, 3);
  const done = await inBatches(
    15,
    () => true,
    take,
    (fault) => faults.push(fault),
  );
  expect(done).toMatchObject({ affected: 10, records: [101, 102] });
  expect(faults).toEqual([new Error("55P03")]);
});

test("what the first one fails with is thrown: nothing was done", async () => {
  const { take } = heap(100, 1);
  await expect(inBatches(15, () => true, take, NEVER)).rejects.toThrow("55P03");
});
