/**
 * The linter's rules, and the floors of the house: imports go down only.
 *
 *   doors       index app cron retain schedule queue sweeping watching faults endpoints http/* cli/* doctor/*
 *   business    billing/*, and every folder of src that is none of the others
 *   mechanisms  inbox/* outbox/* reconcile/* operate/* stripe/*   (inbox and outbox: never each other)
 *   ground      db/* config config-operator log
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type OxlintOverride } from "oxlint";
import manifest from "./package.json" with { type: "json" };

const IN_SRC = readdirSync(join(import.meta.dirname, "src"), { withFileTypes: true });
const OTHERS = "http cli doctor inbox outbox reconcile operate stripe db".split(" ");
const BUSINESS = IN_SRC.filter((entry) => entry.isDirectory() && !OTHERS.includes(entry.name)).map(
  ({ name }) => name,
);
const GROUND_FILES = ["config.ts", "config-operator.ts", "log.ts"];
const DOOR_FILES = IN_SRC.filter(
  (entry) => /\.tsx?$/.test(entry.name) && !GROUND_FILES.includes(entry.name),
).map(({ name }) => name.replace(".", "\\."));
/** Packages that call nobody, for business to use. */
const HARMLESS = ["drizzle-orm", "stripe", "valibot"];
const OTHER_PACKAGES = Object.keys(manifest.dependencies).filter(
  (name) => !HARMLESS.includes(name),
);

interface Ban {
  readonly regex: string;
  readonly message: string;
  readonly allowTypeImports?: boolean;
  readonly importNames?: string[];
}

const doors: Ban = {
  regex: `^\\.{1,2}/(.*/)?((http|cli|doctor)/.*|(${DOOR_FILES.join("|")}))$`,
  message: "Imports go down only: nothing below a door imports a door.",
};
const business: Ban = {
  regex: `^\\.{1,2}/(.*/)?(${BUSINESS.join("|")})/`,
  message: "Imports go down only: a mechanism knows no business; handlers are passed in.",
};
const mechanisms: Ban = {
  regex: "^\\.{1,2}/(.*/)?(inbox|outbox|reconcile|operate|stripe)/",
  message: "Imports go down only: the ground knows no mechanism.",
};
const inbox: Ban = {
  regex: "^\\.{1,2}/(.*/)?inbox/",
  message: "Inbox and outbox never import each other.",
};
const outbox: Ban = { ...inbox, regex: "^\\.{1,2}/(.*/)?outbox/" };
const driver: Ban = {
  regex: "^(pg|pg/.*|@neondatabase/.*|drizzle-orm/(node-postgres|neon).*)$",
  message:
    "Only db/connect.ts, with db/flight.ts and db/neon.ts for it, and db/migrate.ts, knows a driver.",
};
const stripeSdk: Ban = {
  regex: "^stripe$",
  message: "Only stripe/* runs the Stripe SDK; its types may be imported anywhere.",
  allowTypeImports: true,
};
const forgery: Ban = {
  regex: "/stripe/verify\\.ts$",
  importNames: ["eventFromInbox", "eventFromApi"],
  message: "Only the inbox makes events of its rows, and reconciliation of what Stripe answers.",
};
const forgedRows: Ban = { ...forgery, importNames: ["eventFromInbox"] };
const forgedAnswers: Ban = { ...forgery, importNames: ["eventFromApi"] };
const outgoing: Ban = {
  regex: "/stripe/(api|lists|thin|webhook-endpoints)\\.ts$",
  allowTypeImports: true,
  message: "Nothing outside the database is called in a transaction: use the outbox.",
};
const ownConnection: Ban = {
  regex: "/db/(connect|with-connection)\\.ts$",
  allowTypeImports: true,
  message: "A handler works in the transaction that it is given: use its tx.",
};
const network: Ban = {
  ...outgoing,
  regex: `^(cloudflare:.*|(node:)?(net|tls|https?|http2|dgram)|(${OTHER_PACKAGES.join("|")})(/.*)?)$`,
  allowTypeImports: false,
};
const consequences: Ban = { ...outgoing, regex: "/consequences(\\.ts|/.*)$" };
const hono: Ban = { regex: "^hono(/.*)?$", message: "Only app.ts and http/* know Hono." };
const tests: Ban = { regex: "/test/", message: "The product does not import its tests." };

function floor(files: string[], ...bans: Ban[]): OxlintOverride {
  const patterns = [tests, ...bans];
  return { files, rules: { "typescript/no-restricted-imports": ["error", { patterns }] } };
}

/** The guide is held to what it teaches. */
function inBusiness(files: string): string[] {
  return [...BUSINESS.map((folder) => `src/${folder}/${files}`), `test/guide/*/${files}`];
}

/** Where handlers are, nothing leaves but through the outbox. */
function handlersFloor(files: string[]): OxlintOverride[] {
  const { message } = outgoing;
  const globals = ["fetch", "WebSocket", "EventSource", "XMLHttpRequest"];
  return [
    floor(
      files,
      forgery,
      outgoing,
      consequences,
      ownConnection,
      network,
      doors,
      driver,
      stripeSdk,
      hono,
    ),
    {
      files,
      rules: {
        "no-restricted-globals": ["error", ...globals.map((name) => ({ name, message }))],
        "no-restricted-properties": [
          "error",
          ...globals.map((property) => ({ object: "globalThis", property, message })),
        ],
      },
    },
  ];
}

/** What follows from a message is an outside call. */
function consequencesFloor(files: string[]): OxlintOverride[] {
  return [
    floor(files, forgery, doors, driver, stripeSdk, hono),
    { files, rules: { "no-restricted-globals": "off", "no-restricted-properties": "off" } },
  ];
}

export default defineConfig({
  plugins: ["typescript", "unicorn", "oxc", "import", "promise"],
  options: { typeAware: true },
  categories: { correctness: "error", suspicious: "error" },
  rules: {
    "typescript/consistent-return": "off",
    "typescript/no-explicit-any": "error",
    "typescript/no-non-null-assertion": "error",
    // A Drizzle query that is built but neither returned nor awaited is never run.
    "typescript/no-floating-promises": ["error", { checkThenables: true, ignoreVoid: false }],
    "typescript/no-misused-promises": "error",
    "typescript/await-thenable": "error",
    "typescript/switch-exhaustiveness-check": "error",
  },
  overrides: [
    // Lines of the log hold no payload: one file writes them.
    { files: ["src/**"], rules: { "no-console": "error" } },
    { files: ["src/log.ts", "src/cli/**"], rules: { "no-console": "off" } },
    floor(["src/*.ts"], forgery, driver, stripeSdk, hono),
    floor(["src/app.ts", "src/http/**"], forgery, driver, stripeSdk),
    floor(["src/doctor/**"], forgery, driver, stripeSdk, hono),
    floor(["src/cli/**"], forgery, driver, stripeSdk, hono),
    ...handlersFloor(inBusiness("**")),
    ...consequencesFloor(["consequences.ts", "consequences/**"].flatMap(inBusiness)),
    floor(["src/inbox/**"], forgedAnswers, doors, business, outbox, driver, stripeSdk, hono),
    floor(["src/outbox/**"], forgery, doors, business, inbox, driver, stripeSdk, hono),
    floor(["src/reconcile/**"], forgedRows, doors, business, driver, stripeSdk, hono),
    floor(["src/operate/**"], forgery, doors, business, driver, stripeSdk, hono),
    floor(["src/stripe/**"], doors, business, driver, hono),
    floor(
      ["src/config.ts", "src/config-operator.ts", "src/log.ts"],
      doors,
      business,
      mechanisms,
      driver,
      stripeSdk,
      hono,
    ),
    floor(["src/db/**"], doors, business, mechanisms, driver, stripeSdk, hono),
    floor(
      ["src/db/connect.ts", "src/db/flight.ts", "src/db/neon.ts", "src/db/migrate.ts"],
      doors,
      business,
      mechanisms,
      stripeSdk,
      hono,
    ),
  ],
  ignorePatterns: ["drizzle"],
});
