/** A table's indexes, put aside while it is filled: many times faster than to keep them. */
import { escapeIdentifier } from "pg";
import { withClient } from "../bench.ts";
import { inLanes } from "./lanes.ts";

interface Index {
  readonly table: string;
  readonly name: string;
  readonly definition: string;
  /** Of the constraint that stands on it, if one does. */
  readonly constraint: "PRIMARY KEY" | "UNIQUE" | null;
}

/** Foreign keys to the tables are put aside as well, and not checked when they come back. */
export async function withoutIndexes(
  databaseUrl: string,
  tables: readonly string[],
  fill: () => Promise<void>,
): Promise<void> {
  const aside = await withClient(databaseUrl, async (client) => {
    const { rows: references } = await client.query<{ table: string; name: string; text: string }>(
      `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as text
       from pg_constraint where contype = 'f' and confrelid::regclass::text = any($1)`,
      [tables],
    );
    const { rows: indexes } = await client.query<Index>(
      `select indrelid::regclass::text as table, indexrelid::regclass::text as name,
         pg_get_indexdef(indexrelid) as definition,
         case contype when 'p' then 'PRIMARY KEY' when 'u' then 'UNIQUE' end as constraint
       from pg_index left join pg_constraint on conindid = indexrelid and contype in ('p', 'u')
       where indrelid::regclass::text = any($1)`,
      [tables],
    );
    for (const { table, name } of references) await client.query(dropConstraint(table, name));
    for (const { table, name, constraint } of indexes) {
      await client.query(constraint ? dropConstraint(table, name) : `drop index ${name}`);
    }
    return { references, indexes };
  });
  await fill();
  await inLanes(
    databaseUrl,
    aside.indexes.map(({ definition }) => async (client) => {
      await client.query(
        "set maintenance_work_mem = '1GB'; set max_parallel_maintenance_workers = 0",
      );
      await client.query(definition);
    }),
  );
  await withClient(databaseUrl, async (client) => {
    for (const { table, name, constraint } of aside.indexes) {
      if (!constraint) continue;
      const add = `alter table ${table} add constraint ${escapeIdentifier(name)}`;
      await client.query(`${add} ${constraint} using index ${escapeIdentifier(name)}`);
    }
    for (const { table, name, text } of aside.references) {
      const add = `alter table ${table} add constraint ${escapeIdentifier(name)}`;
      await client.query(`${add} ${text} not valid`);
    }
  });
}

function dropConstraint(table: string, name: string): string {
  return `alter table ${table} drop constraint ${escapeIdentifier(name)}`;
}
