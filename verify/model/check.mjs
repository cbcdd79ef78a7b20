// Checks the TLA+ models in this folder: every property holds in every reachable
// state, and every defect that a model can switch on violates the property
// named here. Prints one line per run; with -v also the steps to each defect.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { initSync, check_spec_with_cfg } from 'tla-checker';

const maxStates = 1_000_000, maxDepth = 200;
const verbose = process.argv.includes('-v');

// config is a file in this folder; change sets constants in it.
const runs = [
  { spec: 'Create', config: 'Create' },
  { spec: 'Create', config: 'CreateStored' },
  { spec: 'Inbox', config: 'Inbox' },
  { spec: 'Refund', config: 'Refund' },
  { spec: 'Create', config: 'Create', change: { Bug: '"new reference"' }, violates: 'AtMostOneCharge' },
  { spec: 'Create', config: 'Create', change: { Bug: '"definite after a loss"' }, violates: 'DefiniteFailureIsFinal' },
  { spec: 'Create', config: 'Create', change: { Bug: '"absence is proof"' }, violates: 'DefiniteFailureIsFinal' },
  { spec: 'Create', config: 'CreateStored', change: { Remembers: 'FALSE' }, violates: 'NoForgottenCharge' },
  { spec: 'Inbox', config: 'Inbox', change: { Bug: '"acknowledge first"' }, violates: 'NoAcknowledgedEventIsLost' },
  { spec: 'Inbox', config: 'Inbox', change: { Bug: '"claim any event"' }, violates: 'OneClaimPerResource' },
  { spec: 'Inbox', config: 'Inbox', change: { Bug: '"commit without the token"' }, violates: 'EffectAtMostOnce' },
  { spec: 'Inbox', config: 'Inbox', change: { Bug: '"effect outside the transaction"' }, violates: 'DoneMeansApplied' },
  { spec: 'Refund', config: 'Refund', change: { Bug: '"send again"' }, violates: 'NeverTwice' },
  { spec: 'Refund', config: 'Refund', change: { Bug: '"guess"' }, violates: 'NeverTwice' },
  { spec: 'Refund', config: 'Refund', change: { Bug: '"read too early"' }, violates: 'FinalIsFinal' },
];

const model = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');

// invariants returns the names under INVARIANTS, in the order that the checker counts them.
const invariants = (config) => config.split('INVARIANTS')[1].split('CONSTANTS')[0].trim().split(/\s+/);

function changed(config, change = {}) {
  for (const [name, value] of Object.entries(change)) {
    const line = new RegExp(`(\\b${name} = ).*`);
    if (!line.test(config)) throw new Error(`the configuration has no constant ${name}`);
    config = config.replace(line, `$1${value}`);
  }
  return config;
}

// check explores a model and returns the property that is violated, or null.
function check({ spec, config, change }) {
  const cfg = changed(model(`${config}.cfg`), change);
  const result = JSON.parse(check_spec_with_cfg(model(`${spec}.tla`), cfg, '{}', maxStates, maxDepth, true, false));
  if (result.warnings?.length) throw new Error(`${config}: ${result.warnings.join('; ')}`);
  if (result.success) return { violated: null, ...result };
  const index = /Invariant (\d+) violated/.exec(result.error_message);
  if (!index) throw new Error(`${config}: ${result.error_type}: ${result.error_message}`);
  return { violated: invariants(cfg)[Number(index[1])], ...result };
}

initSync({ module: readFileSync(createRequire(import.meta.url).resolve('tla-checker/tla_checker_bg.wasm')) });

let passed = 0, failed = 0;
for (const run of runs) {
  const { violated, states_explored: states, trace } = check(run);
  const name = run.config + (run.change ? ` with ${Object.entries(run.change).map(([k, v]) => `${k} = ${v}`).join(', ')}` : '');
  const outcome = violated ? `violates ${violated} after ${trace.join('\n').match(/^State \d+$/gm).length - 1} steps` : `holds in all ${states} states`;
  const ok = violated === (run.violates ?? null);
  ok ? passed++ : failed++;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}: ${outcome}${ok ? '' : `; expected ${run.violates ?? 'no violation'}`}`);
  if (trace && (verbose || !ok)) console.log(trace.join('\n'));
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
