/** Exported by `pg`, absent from its types: the very encoder that `pg` applies to parameters. */
declare module "pg/lib/utils.js" {
  /** @throws when the value has no encoding, such as a circular object. */
  export function prepareValue(value: unknown): unknown;
}
