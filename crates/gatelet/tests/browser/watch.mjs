// Looks at the console in a real browser for as long as it is told. Arguments: the
// directory of the tools, the link that logs in, how many seconds. Says on standard
// output what it saw, one JSON document a line: one every ten seconds, and an end.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [tools, link, seconds] = process.argv.slice(2);
const { chromium } = createRequire(join(tools, "browser/package.json"))("playwright-core");
const profile = mkdtempSync(join(tmpdir(), "gatelet-watch-"));
const say = (told) => console.log(JSON.stringify(told));
const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium", args: flags, headless: true, viewport: { width: 1280, height: 860 },
});
const found = { requests: [], troubles: [], renewed: 0 };
const visited = new Set();

function listen(page) {
  page.on("pageerror", (error) => found.troubles.push(`script: ${error}`));
  page.on("requestfinished", async (request) => {
    if (request.url().endsWith("/events")) return;
    const { requestStart, responseEnd } = request.timing();
    const live = request.headers()["x-console-live"] !== undefined;
    if (live) found.renewed += 1;
    if (requestStart < responseEnd) found.requests.push([new URL(request.url()).pathname, responseEnd - requestStart]);
  });
}

// What a page keeps, after what is garbage has been collected.
async function heap(session) {
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const { nodes } = await session.send("Memory.getDOMCounters");
  return { heap: usedSize / 1e6, nodes };
}

try {
  const base = new URL(link).origin + "/console";
  // One page stays open on the calls as they come, another walks about.
  const stays = await browser.newPage();
  listen(stays);
  await stays.goto(link);
  await stays.goto(base + "/calls");
  const session = await browser.newCDPSession(stays);
  const walks = await browser.newPage();
  listen(walks);
  const paths = [
    "", "/upstreams", "/tools", "/tools?q=archive%20an%20invoice", "/calls?ending=fine", "/approvals",
    "/artifacts", "/findings", "/callers?q=invoice", "/config",
  ];
  // One page of each kind, too: a tool, an upstream, a call. The last is the latest of the moment.
  const details = [["/tools", "/tools/"], ["/upstreams", "/upstreams/"], ["/calls", "/calls/"]];
  const firstLink = async ([list, below]) => {
    await walks.goto(base + list);
    const link = walks.locator(`main a[href^="/console${below}"]`).first();
    return (await link.count()) ? (await link.getAttribute("href")).slice("/console".length) : list;
  };
  const end = Date.now() + Number(seconds) * 1000;
  say({ at: "ready" });
  let at = 0, told = Date.now();
  while (Date.now() < end) {
    const turn = at++ % (paths.length + details.length);
    const path = turn < paths.length ? paths[turn] : await firstLink(details[turn - paths.length]);
    const answer = await walks.goto(base + path);
    if (answer.status() !== 200) found.troubles.push(`${path}: ${answer.status()}`);
    visited.add(path.replace(/\d+$/, "N"));
    await walks.waitForTimeout(1500);
    // Only the page in front renews itself.
    await stays.bringToFront();
    await stays.waitForTimeout(1500);
    if (10_000 <= Date.now() - told) {
      told = Date.now();
      say({ at: "look", ...(await heap(session)) });
    }
  }
  say({ at: "look", ...(await heap(session)) });
} catch (error) {
  found.troubles.push(`${error}`);
} finally {
  say({ at: "end", found: { ...found, visited: [...visited] } });
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
