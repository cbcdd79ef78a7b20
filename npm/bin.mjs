#!/usr/bin/env node
// Runs the binary, with the signals and the exit code of the gateway.
import { spawn } from "node:child_process";
import { binary } from "./binary.mjs";

function fail(error) {
  console.error(`mockgateway: ${error.message}`);
  process.exit(1);
}

let path;
try {
  path = binary();
} catch (error) {
  fail(error);
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) { // before there is a gateway to leave behind
  // On Windows kill ends the gateway at once; Ctrl-C reaches it without help.
  process.on(signal, () => process.platform === "win32" || child.kill(signal));
}
const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
child.on("error", fail);
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
