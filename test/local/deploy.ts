/**
 * `npm run deploy`: migrates, where it is told which database, and deploys one environment of wrangler.toml,
 * production unless another one is named. What would reach no database is refused.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "./run-file.ts";
import { environmentOf, isAskedForHelp, whyUnreachable } from "./wrangler-config.ts";

const HELP = `Deploys one environment of wrangler.toml, and migrates its database first where it knows it.

  npm run deploy                       production
  npm run deploy -- --env staging

  --env, -e NAME  an environment of wrangler.toml [CLOUDFLARE_ENV, else production;
                  in Workers Builds, the top level]
  --dry-run       builds and shows what would be deployed; nothing is migrated
  --help          this

What else is given goes to wrangler deploy. DATABASE_URL names the database to migrate, as a role
that may; where it is not set, nothing is migrated.
Exit status 0 when it is deployed, else 1 or wrangler's.`;

const given = process.argv.slice(2);
if (isAskedForHelp(given)) console.log(HELP);
else main();

function main(): void {
  const environment = environmentOf(given, process.env);
  const isDryRun = given.some((flag) => /^--dry-run(?:=|$)/.test(flag) && !flag.endsWith("=false"));
  const config = readConfig(
    { config: join(ROOT, "wrangler.toml"), ...(environment === "" ? {} : { env: environment }) },
    { hideWarnings: true },
  );
  const why = whyUnreachable(config, isDryRun, environment);
  if (why === null) return deploy(environment, isDryRun);
  console.error(why);
  process.exitCode = 1;
}

function deploy(environment: string, isDryRun: boolean): void {
  const name = environment === "" ? "the top level" : environment;
  if (isDryRun) console.log("A dry run: nothing is migrated.");
  else if (process.env["DATABASE_URL"]) {
    const host = URL.parse(process.env["DATABASE_URL"])?.hostname ?? "a database";
    console.log(`Migrating ${host}, for ${name} …`);
    if (!run(process.execPath, [join(ROOT, "src/cli/migrate.ts")])) return;
  } else
    console.log("DATABASE_URL is not set here: nothing is migrated. npm run db:migrate does it.");
  console.log(`Deploying ${name} …`);
  run("wrangler", ["deploy", `--env=${environment}`, ...given.filter(isNoEnvironment)]);
}

function isNoEnvironment(flag: string, index: number): boolean {
  const isValue = /^(?:-e|--env)$/.test(given[index - 1] ?? "");
  return !isValue && !/^(?:-e|--env)(?:=|$)/.test(flag);
}

/** Whether it ended well; if not, so do we. */
function run(program: string, args: readonly string[]): boolean {
  const { status } = spawnSync(program, args, { stdio: "inherit", cwd: ROOT });
  process.exitCode = status ?? 1;
  return status === 0;
}
