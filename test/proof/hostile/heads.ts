/** Methods, paths and headers, from the merely unusual to what no HTTP server takes. */
import { gzipSync } from "node:zlib";
import { type Body, BILLING, fixed, type Head, headOf, type Input, raw, signed } from "./input.ts";
import { type Expected, HEAD_TOO_LARGE, INVALID, type Where } from "./judge.ts";

const NO_ENDPOINT: Expected = { statuses: [404], text: '{"error":"There is no such endpoint."}' };
const NOTHING_HERE: Expected = { statuses: [404], text: '{"error":"There is nothing here."}' };
const POSTED: Expected = { statuses: [405], text: '{"error":"Webhooks are posted."}' };
const OK: Expected = { statuses: [200], text: "ok" };

const at = (path: string, expected: Expected, method = "POST"): Input =>
  fixed(`${method} ${path.slice(0, 60)}`, [headOf({ method, path })], expected);

export const methods: readonly Input[] = [
  ..."GET PUT DELETE PATCH OPTIONS TRACE PROPFIND MKCOL COPY LOCK SEARCH PURGE"
    .split(" ")
    .map((method) => at(BILLING, POSTED, method)),
  at(BILLING, { statuses: [405] }, "HEAD"),
  at("/healthz", OK, "GET"),
  at("/healthz", { statuses: [200] }, "HEAD"),
  at("/healthz", NOTHING_HERE),
  at("/healthz", NOTHING_HERE, "DELETE"),
  at("*", NOTHING_HERE, "OPTIONS"),
];

/** Answered by workerd itself: no Worker hears of them, and the cloud lets none of them through. */
export const methodsOfNoWorker: readonly Input[] = [
  ...["post", "BREW", "M-SEARCH2"].map((method) => at(BILLING, { statuses: [501] }, method)),
  fixed("CONNECT", [raw("CONNECT inbox.test:443 HTTP/1.1\r\nHost: inbox.test\r\n\r\n")], {
    statuses: [500],
  }),
];

const LONG = "a".repeat(8_192);

/** Nobody signs these: what finds the endpoint is refused for that. */
export const paths: readonly Input[] = [
  ...[
    "",
    "/",
    "/billing",
    "/billing/",
    "/billing?",
    "/billing?x=%",
    "/billing?__proto__[endpoint]=connect&constructor=1",
    `/billing?${LONG}`,
    "/billing#connect",
    "/%62illing",
    "/%62%69%6c%6c%69%6e%67",
    "/connect",
    "/later",
  ].map((path) => at(`/webhooks/stripe${path}`, INVALID)),
  ...[
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "valueOf",
    "__defineGetter__",
    "Billing",
    "billing;x",
    "billing%2f",
    "billing%00",
    "billing%20",
    "billing.",
    "billing,connect",
    "%",
    "%zz",
    "%E0%A4%A",
    "%C0%AE",
    "%ff",
    "%F0%9F%98%80",
    "%E2%80%AEgnillib",
    ":endpoint",
    "*",
    "[object Object]".replace(" ", "%20"),
    "null",
    "undefined",
    "0",
    LONG,
    "%61".repeat(2_700),
  ].map((name) => at(`/webhooks/stripe/${name}`, NO_ENDPOINT)),
  ...[
    "/",
    "//",
    "/webhooks",
    "/webhooks/",
    "/WEBHOOKS/stripe/billing",
    "/webhooks/Stripe/billing",
    "//webhooks/stripe/billing",
    "/webhooks//stripe/billing",
    "/webhooks/stripe//billing",
    "/webhooks/stripe/billing//",
    "/webhooks/stripe/billing/x",
    "/webhooks/stripe/./billing",
    "/webhooks/stripe/x/../billing",
    "/webhooks/stripe/..%2fstripe/billing",
    "/webhooks%2fstripe%2fbilling",
    "/webhooks/stripe/../../healthz/x",
    "/healthz/x",
    "/ops",
    "/metrics",
    "/cdn-cgi/handler/scheduled",
    "/.env",
    `/${LONG}`,
    `/${"x/".repeat(4_000)}`,
  ].map((path) => at(path, NOTHING_HERE)),
  at("http://elsewhere.test/webhooks/stripe/billing", INVALID),
  at("http://elsewhere.test/healthz", OK, "GET"),
  at("/healthz/", OK, "GET"),
  at("/healthz?x", OK, "GET"),
];

/** No HTTP: workerd refuses it itself, and no Worker hears of it. */
export const brokenHeads: readonly Input[] = [
  ...Object.entries({
    "no Host": `POST ${BILLING} HTTP/1.1\r\n\r\n`,
    "HTTP/1.0 without Host": `POST ${BILLING} HTTP/1.0\r\n\r\n`,
    "a word for a length": broken("Content-Length: abc"),
    "a negative length": broken("Content-Length: -5"),
    "two lengths": broken("Content-Length: 1\r\nContent-Length: 2"),
    "a length beyond numbers": broken(`Content-Length: ${"9".repeat(40)}`),
    "an unknown transfer coding": broken("Transfer-Encoding: gzip"),
    "a NUL in a header": broken("Stripe-Signature: t=1\0,v1=2"),
    "a folded header": broken("Stripe-Signature: t=1,\r\n v1=2"),
    "a header without a colon": broken("Stripe-Signature"),
    "a header without a name": broken(": t=1"),
    "a bare CR": broken("Stripe-Signature: t=1\rv1=2"),
    "a blank in the path": `POST ${BILLING} x HTTP/1.1\r\nHost: x\r\n\r\n`,
    "a path beyond ASCII": "POST /webhooks/stripe/bill\xefng HTTP/1.1\r\nHost: x\r\n\r\n",
    "no path": "POST  HTTP/1.1\r\nHost: x\r\n\r\n",
    "a TLS hello": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
  }).map(([name, head]) => fixed(name, [raw(head)], { statuses: [400] })),
  ...Object.entries({
    "a head of 1 MB": broken(`Cookie: ${"x".repeat(1_000_000)}`),
    "20,000 headers": broken(`X: ${"y".repeat(40)}\r\n`.repeat(20_000).trim()),
  }).map(([name, head]) => fixed(name, [raw(head)], HEAD_TOO_LARGE)),
  fixed("HTTP/2", [raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")], { statuses: ["closed"] }),
  fixed("nothing", ["end"], { statuses: ["closed"] }),
  fixed("half a head", [raw("POST /webhooks/stri"), "end"], { statuses: [400, "closed"] }),
];

function broken(header: string): string {
  return `POST ${BILLING} HTTP/1.1\r\nHost: inbox.test\r\n${header}\r\n\r\n`;
}

/** Headers beside the signature: none of them changes what is done with a body. */
export function otherHeaders(body: Body, where: Where = "billing"): Input[] {
  const under = (name: string, headers: Head["headers"] = []): Input =>
    signed({ ...body, name }, where, { headers });
  return [
    ...[
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/json; charset=utf-16",
      "application/json; charset=\xff",
      "",
      "/",
      "x".repeat(8_000),
    ].map((type) => under(`Content-Type: ${type.slice(0, 40)}`, [["Content-Type", type]])),
    ...["gzip", "br", "identity", "x".repeat(1_000)].map((coding) =>
      under(`Content-Encoding: ${coding.slice(0, 40)}, and it is not`, [
        ["Content-Encoding", coding],
      ]),
    ),
    under(
      "many headers",
      Array.from({ length: 500 }, (_, n) => [`X-${n}`, "y".repeat(50)]),
    ),
    under("headers named as an object's own", [
      ["__proto__", "x"],
      ["constructor", "x"],
      ["toString", "x"],
    ]),
    under("headers that others heed", [
      ["X-HTTP-Method-Override", "DELETE"],
      ["X-Original-URL", "/healthz"],
      ["X-Forwarded-Host", "elsewhere.test"],
      ["Forwarded", "for=127.0.0.1;by=x;host=y"],
      ["CF-Connecting-IP", "\xff\xfe"],
      ["Range", "bytes=0-10,5-1,-1"],
      ["If-None-Match", "*"],
      ["Origin", "null"],
      ["Authorization", `Basic ${"A".repeat(4_000)}`],
      ["Cookie", "x=".repeat(2_000)],
    ]),
    under("an upgrade to a WebSocket", [
      ["Upgrade", "websocket"],
      ["Sec-WebSocket-Key", "x"],
    ]),
    {
      name: "Content-Encoding: gzip, and it is, signed as it is sent",
      prepare: (secretOf) =>
        signed({ name: "", text: () => gzipSync(body.text()) }, where, {
          headers: [["Content-Encoding", "gzip"]],
        }).prepare(secretOf),
    },
  ];
}
