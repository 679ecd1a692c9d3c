// Drives the console in a real browser. Arguments: the directory of the tools, the
// link that logs in, a directory for pictures. Says on standard output how far it
// is, one JSON document a line; the last one is what it found.
import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [tools, link, pictures, extra] = process.argv.slice(2);
const load = createRequire(join(tools, "browser/package.json"));
const { chromium } = load("playwright-core");
const axe = load.resolve("axe-core/axe.min.js");
mkdirSync(pictures, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), "gatelet-browser-"));
const say = (told) => console.log(JSON.stringify(told));
const found = { troubles: [], violations: [], pages: [] };

const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium", args: flags, headless: true,
  viewport: { width: 1280, height: 860 }, colorScheme: "light", bypassCSP: false,
});
const page = await browser.newPage();
page.on("pageerror", (error) => found.troubles.push(`script: ${error}`));
page.on("console", (line) => {
  if (line.type() === "error" && !line.text().startsWith("Failed to load resource")) found.troubles.push(line.text());
});
const base = new URL(link).origin + "/console";

async function picture(name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`), fullPage: false });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

// The judge's script is put in by the driver, past the policy of the page; it is run
// in both themes, because contrast differs.
async function judge(name) {
  const source = (await import("node:fs")).readFileSync(axe, "utf8");
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(source);
    const told = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    for (const one of told.violations.filter(({ impact }) => ["serious", "critical"].includes(impact))) {
      found.violations.push(`${name} (${colorScheme}): ${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
}

async function visit(path, name) {
  const answer = await page.goto(base + path);
  if (answer.status() !== 200) found.troubles.push(`${path}: ${answer.status()}`);
  await page.waitForSelector("h1");
  await picture(name);
  await judge(name);
  found.pages.push(name);
}

try {
  await page.goto(link);
  await page.waitForSelector("h1");
  // A link works once.
  const again = await browser.request.get(link, { maxRedirects: 0 });
  if (again.status() !== 403) found.troubles.push(`the link worked twice: ${again.status()}`);
  await page.goto(base + "/approvals");
  say({ at: "ready" });
  // The request appears by itself, and is decided with the keyboard alone.
  const allow = page.getByRole("button", { name: /^Allow once/ }).first();
  await allow.waitFor({ timeout: 60_000 });
  await picture("approvals");
  await judge("approvals");
  await page.getByRole("link", { name: /units\/convert/ }).first().click();
  await page.waitForSelector("h1");
  await picture("approval");
  await judge("approval");
  await page.getByRole("button", { name: /^Allow once/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("status").waitFor();
  say({ at: "allowed", notice: await page.getByRole("status").innerText() });
  for (const [path, name] of JSON.parse(extra)) await visit(path, name);
  // A tool is called by the form made from its schema.
  await page.goto(base + "/tools?q=convert%20units");
  await page.getByRole("link", { name: "units.convert" }).first().click();
  await page.waitForSelector("h1");
  await picture("tool");
  await judge("tool");
  // One that nobody is asked about answers on the page of its form.
  await page.goto(base + "/tools/text.count");
  await page.getByLabel(/^text/).fill("one two\nthree");
  await page.getByRole("button", { name: "Call" }).click();
  await page.getByRole("heading", { name: /^Answer/ }).waitFor();
  found.answer = await page.locator("section[aria-labelledby=answer]").innerText();
  await picture("answer");
  await judge("answer");
  // A call that is shown has its stages.
  await page.goto(base + "/calls");
  await page.getByRole("link", { name: /units\/convert/ }).first().click();
  await page.getByRole("heading", { name: "Stages" }).waitFor();
  await picture("call");
  await judge("call");
  // A change of the configuration is looked at before it is saved.
  await page.goto(base + "/config");
  const text = page.getByLabel("The file");
  await text.fill((await text.inputValue()) + "\n[gate]\nlimit = 5000\n");
  await page.getByRole("button", { name: "Show what would change" }).click();
  await page.getByRole("button", { name: "Save" }).waitFor();
  await picture("config-review");
  await judge("config-review");
  const cookies = await browser.cookies();
  found.cookies = cookies.map(({ name, httpOnly, sameSite, path }) => ({ name, httpOnly, sameSite, path }));
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForSelector("#key");
  const after = await page.goto(base + "/approvals");
  if (after.status() !== 401) found.troubles.push(`still in after logging out: ${after.status()}`);
} catch (error) {
  found.troubles.push(`${error}`);
  await page.screenshot({ path: join(pictures, "trouble.png") }).catch(() => {});
} finally {
  say({ at: "end", found });
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
