/**
 * The reading side of a fake of Stripe's API: the list of events, invoices, webhook endpoints, and
 * whatever object is put at a path.
 * It pages, newest first, filters by time and type, and forgets events that are 30 days old.
 *
 * An invoice is what its last event said of it, in that event's shape, unless it is told otherwise.
 *
 * Not imitated: limits of its own, `expand`, other filters, and whatever else Stripe lists.
 */
import type { JsonObject } from "./invoice-shapes.ts";
import type { StripeEvent } from "./events.ts";

/** One request as it arrived. */
export interface ListRequest {
  readonly path: string;
  /** The connected account that is asked for; null: the key's own. */
  readonly account: string | null;
  readonly parameters: URLSearchParams;
  /** Counts from 1, of all. */
  readonly n: number;
}

export interface ListAnswer {
  readonly status: number;
  readonly body: JsonObject;
}

const LISTED_SECONDS = 30 * 86_400;
const DEFAULT_LIMIT = 10;

interface Listed {
  readonly id: string;
  readonly created: number;
  readonly type?: string;
  readonly object: JsonObject;
}

export class StripeLists {
  readonly requests: ListRequest[] = [];
  /** To which Stripe delivers, in the key's mode: see `webhookEndpoint`. */
  endpoints: readonly JsonObject[] = [];
  /** By path, also of connected accounts: what a thin notification leads to. */
  readonly objects = new Map<string, JsonObject>();
  readonly #events = new Map<string | null, Listed[]>();
  readonly #invoices = new Map<string, { account: string | null; invoice: JsonObject }>();

  /** An event that happened, in our own account or in one connected to it. */
  addEvent(event: StripeEvent): void {
    // Stripe's v1 list has no v2 notifications; what one names can be read.
    if (event.object !== "event") {
      this.objects.set(`/v2/core/events/${event.id}`, event);
      return this.#addRelated(event["related_object"]);
    }
    const { account, ...object } = event;
    const created = Number(event["created"]);
    const list = this.#events.get(account ?? null) ?? [];
    list.push({ id: event.id, created, type: event.type, object });
    this.#events.set(account ?? null, list);
    const { object: invoice } = event.data ?? {};
    const id = invoice?.["object"] === "invoice" ? invoice["id"] : undefined;
    if (!invoice || typeof id !== "string") return;
    if (event.type === "invoice.deleted") this.removeInvoice(id);
    else this.setInvoice(invoice, account);
  }

  #addRelated(related: unknown): void {
    if (typeof related !== "object" || related === null) return;
    const { id, type, url } = Object.assign({ id: null, type: null, url: null }, related);
    this.objects.set(String(url), { id, object: type });
  }

  /** An invoice as it is now, of our own account or of one connected to it. */
  setInvoice(invoice: JsonObject, account: string | null = null): void {
    this.#invoices.set(String(invoice["id"]), { account, invoice });
  }

  changeInvoice(id: string, fields: JsonObject): void {
    const { account = null, invoice } = this.#invoices.get(id) ?? {};
    this.setInvoice({ ...invoice, ...fields }, account);
  }

  removeInvoice(id: string): void {
    this.#invoices.delete(id);
  }

  clear(): void {
    this.requests.length = 0;
    this.#events.clear();
    this.#invoices.clear();
    this.objects.clear();
    this.endpoints = [];
  }

  /** @returns null for what is not read here. */
  answer({ path, account, parameters }: ListRequest): ListAnswer | null {
    const object = this.objects.get(path);
    if (object) return { status: 200, body: object };
    if (path === "/v1/events") {
      const youngest = Date.now() / 1_000 - LISTED_SECONDS;
      const events = this.#events.get(account) ?? [];
      return page(
        events.filter(({ created }) => created > youngest),
        path,
        parameters,
      );
    }
    if (path === "/v1/invoices") {
      const theirs = [...this.#invoices.values()].filter((one) => one.account === account);
      return page(
        theirs.map(({ invoice }) => asListed(invoice)),
        path,
        parameters,
      );
    }
    if (path === "/v1/webhook_endpoints") {
      return page(this.endpoints.map(asListed), path, parameters);
    }
    const id = /^\/v1\/invoices\/([^/]+)$/.exec(path)?.[1];
    if (id === undefined) return null;
    const found = this.#invoices.get(decodeURIComponent(id));
    return found?.account === account ? { status: 200, body: found.invoice } : refusal(404, "id");
  }
}

function page(all: readonly Listed[], path: string, parameters: URLSearchParams): ListAnswer {
  const types = [...parameters].flatMap(([name, value]) =>
    /^types(\[\d*\])?$/.test(name) ? [value] : [],
  );
  const from = Number(parameters.get("created[gte]") ?? 0);
  const to = Number(parameters.get("created[lte]") ?? Infinity);
  const limit = Number(parameters.get("limit") ?? DEFAULT_LIMIT);
  if (!(limit >= 1 && limit <= 100)) return refusal(400, "limit");
  if (types.length > 20) return refusal(400, "types");

  // What was added later is newer within a second.
  const sorted = all.toReversed().toSorted((a, b) => b.created - a.created);
  const after = parameters.get("starting_after");
  const position = after === null ? -1 : sorted.findIndex(({ id }) => id === after);
  if (after !== null && position === -1) return refusal(400, "starting_after");
  const rest = sorted
    .slice(position + 1)
    .filter(({ created }) => created >= from && created <= to)
    .filter(({ type }) => types.length === 0 || (type !== undefined && types.includes(type)));
  return {
    status: 200,
    body: {
      object: "list",
      url: path,
      data: rest.slice(0, limit).map(({ object }) => object),
      has_more: rest.length > limit,
    },
  };
}

function asListed(object: JsonObject): Listed {
  return { id: String(object["id"]), created: Number(object["created"]), object };
}

function refusal(status: number, param: string): ListAnswer {
  const error = { type: "invalid_request_error", code: "resource_missing", param, message: "No." };
  return { status, body: { error } };
}
