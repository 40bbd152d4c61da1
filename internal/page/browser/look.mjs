// Looks at the page in Chromium, as people do: at a desk and on a phone, in light and dark, with and without JavaScript. It prints what is
// wrong, a line each, and writes pictures. Arguments: the directory with the modules, the address of the page, a directory for the pictures, and
// "all" or "looks" (in light alone, and nothing is done); then the paths of the page.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, address, pictures, what, ...paths] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const { source: axe } = require("axe-core");

// As root Chromium has no sandbox, and it makes no call to the network.
const flags = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const devices = {
  desk: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
};
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const wrong = (text) => console.log(text);

// open loads a path and says what the browser complains about: of scripts, of the policy, and of what is not there.
async function open(page, path) {
  page.removeAllListeners();
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && wrong(`${path}: the browser says: ${m.text()}`));
  page.on("pageerror", (e) => wrong(`${path}: ${e.message}`));
  page.on("response", (r) => r.status() >= 400 && wrong(`${path}: ${r.url()} has the status ${r.status()}`));
  await page.goto(address + path);
}

const name = (path) => path.replace(/[^a-z]+/g, "-").replace(/^-|-$/g, "") || "now";

// picture has what is on the screen, without the ground below a short page. It is taken again if Chromium has no frame to take, as now and then on a busy machine.
async function picture(page, file) {
  const { width, height } = page.viewportSize();
  const used = await page.evaluate(() => Math.ceil(document.body.getBoundingClientRect().bottom));
  for (let left = 5; ; left--) {
    try {
      return await page.screenshot({ path: join(pictures, file), clip: { x: 0, y: 0, width, height: Math.min(height, used) } });
    } catch (err) {
      if (left === 1 || !err.message.includes("Unable to capture screenshot")) {
        throw err;
      }
    }
  }
}

// looks visits each page in a device and colors.
async function looks(browser, device, colorScheme) {
  const plain = await browser.newContext({ ...devices[device], colorScheme });
  const bypassing = await browser.newContext({ ...devices[device], colorScheme, bypassCSP: true }); // for axe alone, which is no script of the page
  const [page, checked] = [await plain.newPage(), await bypassing.newPage()];
  for (const path of paths) {
    await open(page, path);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) {
      wrong(`${path} on a ${device} is ${over} pixels wider than the screen`);
    }
    if (device === "phone") {
      // Nothing of a table is beside the screen: the reason is its last column.
      const beside = await page.evaluate(() => [...document.querySelectorAll(".table, td")].filter((e) => e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth).length);
      if (beside > 0) {
        wrong(`${path} on a phone has ${beside} cells that are wider than the screen`);
      }
    }
    await picture(page, `${name(path)}-${device}-${colorScheme}.png`);
    await checked.goto(address + path);
    await checked.evaluate(axe);
    const { violations } = await checked.evaluate((values) => axe.run(document, { runOnly: { type: "tag", values } }), rules);
    for (const v of violations) {
      wrong(`${path} on a ${device} in ${colorScheme}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html).join(" ")}`);
    }
  }
  await plain.close();
  await bypassing.close();
}

// withoutScript: the tables are there, and nothing that would not work.
async function withoutScript(browser) {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(address);
  if ((await page.locator("table tbody tr").count()) === 0) {
    wrong("without JavaScript there is no table");
  }
  await page.goto(address + "history?span=24h");
  if (await page.locator("#slider").isVisible()) {
    wrong("without JavaScript the slider is there, and does nothing");
  }
  if ((await page.locator("svg rect").count()) === 0) {
    wrong("without JavaScript there is no chart");
  }
  await context.close();
}

// slides moves the slider by the keyboard, and reads what it counts.
async function slides(browser) {
  const page = await browser.newPage();
  await open(page, "history?span=24h");
  const shown = page.locator("output");
  const last = await shown.textContent();
  await page.locator("#slider").focus();
  await page.keyboard.press("Home");
  const first = await shown.textContent();
  const counted = [...last.matchAll(/(\d+) \w/g)].reduce((sum, [, n]) => sum + Number(n), 0);
  const hosts = Number((await page.locator("main").textContent()).match(/Hosts \d+ to \d+ of (\d+)/)?.[1] ?? (await page.locator(".lanes li").count()));
  if (!/^\d\d:\d\d:\d\d: \d+ \w+/.test(last) || counted < 1 || counted > hosts || first === last || (await page.locator("#cursor").getAttribute("x1")) !== "0%") {
    wrong(`the slider shows "${first}" at its begin and "${last}" at its end, of ${hosts} hosts`);
  }
  await page.close();
}

// updates: a page that is looked at is read again, and says when it cannot be.
async function updates(browser) {
  const page = await browser.newPage();
  await page.clock.install();
  await open(page, "");
  const again = page.waitForResponse((r) => r.url() === address);
  await page.clock.fastForward(11_000);
  await again;
  await page.locator("h1").waitFor();
  page.removeAllListeners();
  await page.route(address, (route) => route.fulfill({ status: 303, headers: { Location: address + "login" } }));
  await page.clock.fastForward(11_000);
  await page.getByText("The session has ended; showing the last data.").waitFor({ timeout: 10_000 });
  await page.unroute(address);
  await page.route("**/*", (route) => route.abort());
  await page.clock.fastForward(11_000);
  await page.getByText("controld does not answer; showing the last data.").waitFor({ timeout: 10_000 });
  if ((await page.locator("table tbody tr").count()) === 0) {
    wrong("a page that cannot be read again has lost what it showed");
  }
  await page.close();
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
try {
  for (const device of Object.keys(devices)) {
    for (const colors of what === "all" ? ["light", "dark"] : ["light"]) {
      await looks(browser, device, colors);
    }
  }
  if (what === "all") {
    await withoutScript(browser);
    await slides(browser);
    await updates(browser);
  }
} finally {
  await browser.close();
}
console.log("looked at all pages");
