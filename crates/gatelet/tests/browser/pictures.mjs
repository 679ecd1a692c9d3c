// Takes the pictures of the guide in a real browser. Arguments: the directory of the
// tools, the link that logs in, a directory for pictures, and as JSON which page is
// taken under which name, in which theme. Says on standard output what it took.
import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [tools, link, pictures, wanted] = process.argv.slice(2);
const { chromium } = createRequire(join(tools, "browser/package.json"))("playwright-core");
mkdirSync(pictures, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), "gatelet-pictures-"));
const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
// A page that runs no script at all: what is on the pictures can be read without.
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium", args: flags, headless: true,
  viewport: { width: 1120, height: 640 }, javaScriptEnabled: false,
});
const found = { taken: {}, troubles: [] };
try {
  const page = await browser.newPage();
  await page.goto(link);
  const base = new URL(link).origin + "/console";
  for (const [path, name, colorScheme, follow] of JSON.parse(wanted)) {
    await page.emulateMedia({ colorScheme });
    await page.goto(base + path);
    if (follow) await page.getByRole("link", { name: follow }).first().click();
    await page.locator("h1").waitFor();
    const file = join(pictures, `${name}.png`);
    await page.screenshot({ path: file });
    found.taken[name] = { bytes: statSync(file).size, text: await page.locator("main").innerText() };
  }
  // Forms work without a script, too.
  await page.goto(base + "/approvals");
  await page.getByRole("button", { name: /^Deny request/ }).first().click();
  found.said = await page.getByRole("status").innerText();
} catch (error) {
  found.troubles.push(`${error}`);
} finally {
  console.log(JSON.stringify(found));
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
