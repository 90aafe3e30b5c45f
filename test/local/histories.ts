/**
 * What can happen to an invoice at Stripe, from its creation to its end, as lists of changes.
 * The last ones cannot happen, and do: they contradict each other, and a person must look.
 */
export type Change =
  | "create"
  | "finalize"
  | "fail"
  | "pay"
  | "pay_other_amount"
  | "mark_uncollectible"
  | "void"
  | "delete"
  | "edit";

export interface History {
  /** How often, compared with the others. */
  readonly weight: number;
  readonly changes: readonly [Change, ...Change[]];
  readonly free?: true;
}

export const HISTORIES = {
  paid: { weight: 50, changes: ["create", "finalize", "pay"] },
  edited_and_paid: { weight: 8, changes: ["create", "edit", "finalize", "pay"] },
  paid_at_last: { weight: 12, changes: ["create", "finalize", "fail", "fail", "pay"] },
  free: { weight: 5, changes: ["create", "finalize", "pay"], free: true },
  open: { weight: 5, changes: ["create", "finalize"] },
  draft: { weight: 2, changes: ["create", "edit"] },
  deleted: { weight: 3, changes: ["create", "edit", "delete"] },
  voided: { weight: 5, changes: ["create", "finalize", "void"] },
  given_up: { weight: 3, changes: ["create", "finalize", "fail", "mark_uncollectible"] },
  given_up_paid: { weight: 2, changes: ["create", "finalize", "mark_uncollectible", "pay"] },
  given_up_voided: { weight: 2, changes: ["create", "finalize", "mark_uncollectible", "void"] },
  /** Its earlier events were sent before the endpoint existed. */
  only_paid: { weight: 2, changes: ["pay"] },
  only_edited: { weight: 1, changes: ["edit"] },
  paid_and_voided: { weight: 1, changes: ["create", "finalize", "pay", "void"] },
  free_and_voided: { weight: 1, changes: ["create", "finalize", "pay", "void"], free: true },
  paid_twice: { weight: 1, changes: ["create", "finalize", "pay", "pay_other_amount"] },
} as const satisfies Readonly<Record<string, History>>;
