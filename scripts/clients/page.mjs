// The page at / in a real browser without a screen: Chromium from the system, or the one that CHROMIUM names.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { assert, idle, model, ok, url } from './pond.mjs';

const path = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'].find(p => p && existsSync(p));
if (!path) {
  console.log('skipped: no Chromium here (apt-get install chromium, or CHROMIUM=path)');
  process.exit(0);
}
const browser = await chromium.launch({ executablePath: path, args: ['--no-sandbox'] });
try {
  for (const [name, viewport, colorScheme] of [['desktop, light', { width: 1200, height: 800 }, 'light'], ['phone, dark', { width: 360, height: 640 }, 'dark']]) {
    const context = await browser.newContext({ viewport, colorScheme });
    const page = await context.newPage();
    const faults = [], foreign = [];
    page.on('console', m => m.type() === 'error' && faults.push(m.text()));
    page.on('pageerror', e => faults.push(String(e)));
    page.on('request', r => r.url().startsWith(url) || r.url().startsWith('data:') || foreign.push(r.url()));
    await page.goto(url + '/');
    await page.locator('#state', { hasText: model }).waitFor();
    await page.locator('#connect summary').click();
    assert((await page.locator('#endpoint').textContent()) === url + '/v1', 'the endpoint');
    assert((await page.locator('#curl').textContent()).includes(model), 'a line for curl with the model');
    await page.locator('#connect summary').click();
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert(ground === (colorScheme === 'dark' ? 'rgb(20, 25, 24)' : 'rgb(251, 251, 249)'), colorScheme + ' colours, got ' + ground);
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing wider than the screen');
    ok('page, ' + name);

    // Enter that ends a word of an input method sends nothing.
    await page.locator('#text').fill('Say hello.');
    await page.evaluate(() => document.getElementById('text').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true })));
    assert(await page.locator('.turn').count() === 0, 'nothing sent while composing');
    await page.keyboard.press('Shift+Enter');
    assert((await page.locator('#text').inputValue()).includes('\n') && await page.locator('.turn').count() === 0, 'a new line');
    await page.locator('#think').uncheck();
    await page.locator('#text').press('Enter');
    await page.locator('.pond .figures').waitFor({ timeout: 300000 });
    assert((await page.locator('.pond .said').last().textContent()).trim(), 'an answer');
    ok('chat, ' + name);

    await page.locator('#fresh').click();
    assert(await page.locator('.turn').count() === 0, 'an empty chat');
    await page.locator('#think').check();
    await page.locator('#text').fill('Tell a very long story about a pond.');
    await page.locator('#send').click();
    await page.locator('.pond details summary').waitFor({ timeout: 300000 });
    assert(await page.locator('.pond details').evaluate(d => !d.open), 'thinking folded');
    if (await page.locator('#now').isVisible()) await page.locator('#now').click().catch(() => {});
    if (await page.locator('#stop').isVisible()) await page.locator('#stop').click().catch(() => {});
    await page.locator('#send').waitFor({ timeout: 300000 });
    await idle();
    ok('thinking, stop, ' + name);
    assert(faults.length === 0, 'no errors in the console, got ' + faults.join('; '));
    assert(foreign.length === 0, 'no request elsewhere, got ' + foreign);
    await context.close();
  }
} finally {
  await browser.close();
}
