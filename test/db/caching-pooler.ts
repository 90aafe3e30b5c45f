/**
 * A pooler before Postgres that answers a SELECT outside a transaction with what it answered the
 * first time, as Hyperdrive does with caching on.
 *
 * Not imitated: pooling; that a cached query does not reach the database, and that its answer is
 * forgotten after a time (this one asks all the same, and remembers for ever); functions that
 * Hyperdrive knows to be volatile.
 */
import { type Fate, type Message, type Proxy, startProxy } from "../local/proxy.ts";

interface Conversation {
  /** What the client has said since its last query. */
  said: Buffer;
  /** Queries that are not answered yet, the oldest first. */
  readonly asked: string[];
  answer: Buffer[];
  /** Whether the server, at its last answer, was inside no transaction. */
  isIdle: boolean;
}

/** Messages that end a query, and the one that ends its answer. */
const ENDS_QUERY = /^[QS]$/;
const READY = "Z";
const IDLE = "I";
const SELECTS = /\0select\b/i;

export async function startCachingPooler(databaseUrl: string): Promise<Proxy> {
  const answers = new Map<string, Buffer>();
  const conversations = new Map<number, Conversation>();
  const conversationOf = (connection: number): Conversation => {
    const known = conversations.get(connection);
    if (known) return known;
    const begun: Conversation = { said: Buffer.alloc(0), asked: [], answer: [], isIdle: false };
    conversations.set(connection, begun);
    return begun;
  };

  const listen = (conversation: Conversation, { type, bytes }: Message): Fate => {
    if (type === "startup") return "pass";
    conversation.said = Buffer.concat([conversation.said, bytes]);
    if (ENDS_QUERY.test(type)) {
      conversation.asked.push(conversation.said.toString("latin1"));
      conversation.said = Buffer.alloc(0);
    }
    return "pass";
  };

  /** An answer is held back until it is complete: what it is worth shows at its end. */
  const answer = (conversation: Conversation, { type, bytes }: Message): Fate => {
    const [query] = conversation.asked;
    if (query === undefined) {
      if (type === READY) conversation.isIdle = true;
      return "pass";
    }
    conversation.answer.push(bytes);
    if (type !== READY) return { instead: Buffer.alloc(0) };
    const fresh = Buffer.concat(conversation.answer);
    const wasIdle = conversation.isIdle;
    conversation.isIdle = bytes.toString("latin1", 5) === IDLE;
    conversation.answer = [];
    conversation.asked.shift();
    if (!wasIdle || !conversation.isIdle || !SELECTS.test(query)) return { instead: fresh };
    const kept = answers.get(query) ?? fresh;
    answers.set(query, kept);
    return { instead: kept };
  };

  return startProxy(databaseUrl, {
    fate: (message) => {
      const conversation = conversationOf(message.connection);
      return message.from === "client"
        ? listen(conversation, message)
        : answer(conversation, message);
    },
  });
}
