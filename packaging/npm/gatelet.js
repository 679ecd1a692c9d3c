#!/usr/bin/env node
// Starts the program from this platform's package, hands it our streams, and ends
// as it ends. No message passes through here.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;

function program() {
  try {
    return require.resolve(`@gatelet/${platform}/bin/gatelet`);
  } catch {
    console.error(
      `gatelet: the package @gatelet/${platform} is not installed. ` +
        "Either there is none for this platform, or npm was told to leave out optional packages; " +
        "then install it by name.",
    );
    process.exit(4);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });

// A terminal sends these to the program, too; it takes the first and ignores the second.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}

child.on("error", (error) => {
  console.error(`gatelet: cannot start the program: ${error.message}`);
  process.exit(4);
});

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
