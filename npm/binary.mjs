// Finds the binary, which is in a package of its own for each platform. npm installs
// only that of the machine: it is an optional dependency.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const own = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));

// binary returns the path of mockgateway.
export function binary(platform = process.platform, arch = process.arch) {
  const name = `@${own.name}/${platform}-${arch}`;
  if (!(name in own.optionalDependencies)) {
    throw new Error(`${own.name} has no binary for ${platform}-${arch}, only the packages ${Object.keys(own.optionalDependencies).join(", ")}`);
  }
  try {
    return createRequire(import.meta.url).resolve(`${name}/${own.name}${platform === "win32" ? ".exe" : ""}`);
  } catch {
    throw new Error(`the package ${name} is missing: install ${own.name} with its optional dependencies, on the platform on which it runs`);
  }
}
