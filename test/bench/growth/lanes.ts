/** Work for several connections at a time. */
import type { Client } from "pg";
import { withClient } from "../bench.ts";

export type Piece = (client: Client) => Promise<unknown>;

/** More than processors would only wait for one another. */
const LANES = 2;

/** Each connection takes the next piece when it is done with one. */
export async function inLanes(databaseUrl: string, pieces: readonly Piece[]): Promise<void> {
  const left = [...pieces];
  await Promise.all(
    Array.from({ length: LANES }, () =>
      withClient(databaseUrl, async (client) => {
        for (let piece = left.shift(); piece; piece = left.shift()) await piece(client);
      }),
    ),
  );
}
