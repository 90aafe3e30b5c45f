/** A backlog, claimed and marked by the Worker's own statements, without a handler's writes. */
import { CLAIM_BATCH, drive } from "./driven.ts";

/** @returns what each claim took, in milliseconds, in the order of their ends. */
export function drainByMarks(databaseUrl: string, connections: number): Promise<readonly number[]> {
  return drive(databaseUrl, connections, async (lanes) => {
    const times: number[] = [];
    await Promise.all(
      lanes.map(async ({ claim, mark }) => {
        for (;;) {
          const startedAt = performance.now();
          const claimed = await claim(CLAIM_BATCH);
          if (claimed.length === 0) return;
          times.push(performance.now() - startedAt);
          await mark(claimed);
        }
      }),
    );
    return times;
  });
}
