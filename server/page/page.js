
'use strict';
const $ = id => document.getElementById(id);
const base = location.origin;
const messages = [];
let model = '', key = sessionStorage.getItem('pond-key') || '', running = null;

function headers(more) {
  return key ? { ...more, Authorization: 'Bearer ' + key } : { ...more };
}

// What failed, in the server's own words where it has any.
async function faultOf(response) {
  if (response.status === 401) $('keyform').hidden = false;
  try { return (await response.json()).error.message; } catch { return 'the server answered ' + response.status; }
}

// State and snippets.

function showState(s) {
  const context = s.context_tokens.toLocaleString('en') + ' tokens of prompt and answer';
  let text = s.model + ', ready';
  if (s.state === 'paused') text = s.model + ', paused';
  if (s.state === 'busy') text = s.model + (s.tokens_per_second > 0 ? ', ' + Math.round(s.tokens_per_second) + ' tokens a second' : ', working');
  if (s.queued > 0) text += ', ' + s.queued + ' waiting';
  if ($('state').textContent !== text) $('state').textContent = text;
  if (s.model === model) return;
  model = s.model;
  $('model').textContent = model;
  $('context').textContent = context + ', on ' + s.executor;
  snippets();
}

function snippets() {
  const auth = key ? " -H 'Authorization: Bearer $POND_API_KEY'" : '';
  const secret = key ? 'os.environ["POND_API_KEY"]' : '"none"', secretJS = key ? 'process.env.POND_API_KEY' : '"none"';
  $('endpoint').textContent = base + '/v1';
  $('curl').textContent = 'curl ' + base + "/v1/chat/completions -H 'Content-Type: application/json'" + auth + ' \\\n  -d \'{"model": "' + model + '", "messages": [{"role": "user", "content": "Hello"}]}\'';
  $('python').textContent = (key ? 'import os\n' : '') + 'from openai import OpenAI\n\nclient = OpenAI(base_url="' + base + '/v1", api_key=' + secret + ')\nanswer = client.chat.completions.create(\n    model="' + model +
    '", messages=[{"role": "user", "content": "Hello"}])\nprint(answer.choices[0].message.content)';
  $('javascript').textContent = 'import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "' + base + '/v1", apiKey: ' + secretJS + ' });\nconst answer = await client.chat.completions.create({\n  model: "' + model +
    '", messages: [{ role: "user", content: "Hello" }] });\nconsole.log(answer.choices[0].message.content);';
  $('anthropic').textContent = 'export ANTHROPIC_BASE_URL=' + base + '\nexport ANTHROPIC_AUTH_TOKEN=' + (key ? '$POND_API_KEY' : 'none') + '\nexport ANTHROPIC_MODEL=' + model + '\nexport ANTHROPIC_DEFAULT_HAIKU_MODEL=' + model;
}

async function watch() {
  try {
    const response = await fetch('/v1/pond/status', { headers: headers(), cache: 'no-store' });
    if (response.ok) {
      $('keyform').hidden = true;
      showState(await response.json());
    } else {
      $('state').textContent = response.status === 401 ? 'needs a key' : await faultOf(response);
      if (response.status === 401) $('keyform').hidden = false;
    }
  } catch {
    $('state').textContent = 'not reachable';
  }
}

async function copy(button) {
  const source = $(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch { // not a secure context, as on a phone in the same network
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand('copy');
  }
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

// The chat.

function element(parent, name, kind, text) {
  const e = document.createElement(name);
  if (kind) e.className = kind;
  if (text) e.textContent = text;
  parent.append(e);
  return e;
}

function turn(kind, who) {
  const e = element($('log'), 'section', 'turn ' + kind);
  element(e, 'p', 'who', who);
  return e;
}

// events gives the data of each event of a stream, whole, however the network cuts it.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    for (let end = held.indexOf('\n\n'); end >= 0; end = held.indexOf('\n\n')) {
      const block = held.slice(0, end);
      held = held.slice(end + 2);
      if (block.startsWith('data: ')) yield block.slice(6);
      else if (block.startsWith(': ')) yield { comment: block.slice(2) };
    }
  }
}

// follow keeps the end in view, unless the reader has gone elsewhere.
function follow(change) {
  const page = document.documentElement;
  const near = page.scrollHeight - page.scrollTop - page.clientHeight < 120;
  change();
  if (near) page.scrollTop = page.scrollHeight;
}

async function ask(text) {
  const stop = new AbortController();
  running = { stop, request: '' };
  busy(true);
  messages.push({ role: 'user', content: text });
  follow(() => element(turn('user', 'You'), 'p', 'said', text));
  const e = turn('pond', model || 'Pond');
  const wait = element(e, 'p', 'quiet', 'waiting');
  let fold = null, thoughts = null, said = null, content = '', ended = false;
  const wrong = message => follow(() => element(e, 'p', 'wrong', message));
  try {
    const response = await fetch('/v1/chat/completions', { method: 'POST', signal: stop.signal, headers: headers({ 'Content-Type': 'application/json' }),
      body: JSON.stringify({ messages, stream: true, stream_options: { include_usage: true }, enable_thinking: $('think').checked }) });
    if (!response.ok) throw new Error(await faultOf(response));
    running.request = response.headers.get('X-Request-Id');
    for await (const data of events(response.body)) {
      if (data.comment) { wait.textContent = data.comment === 'pond' ? 'waiting' : data.comment; continue; }
      if (data === '[DONE]') { ended = true; break; }
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      follow(() => {
        if (chunk.usage) {
          const u = chunk.usage, rate = u.timings.decode_tokens_per_second;
          element(e, 'p', 'figures', u.completion_tokens + ' tokens, ' + rate + ' a second' + (u.prompt_tokens_details.cached_tokens ? ', ' + u.prompt_tokens_details.cached_tokens + ' of ' + u.prompt_tokens + ' of the prompt known' : ''));
        }
        if (!chunk.choices.length) return;
        const delta = chunk.choices[0].delta;
        if (delta.reasoning_content) {
          wait.hidden = true;
          if (!fold) {
            fold = element(e, 'details');
            element(fold, 'summary', '', 'Thinking…');
            thoughts = element(fold, 'p', 'said');
            $('now').hidden = false;
          }
          thoughts.append(delta.reasoning_content);
        }
        if (delta.content) {
          wait.hidden = true;
          $('now').hidden = true;
          if (fold) fold.firstChild.textContent = 'Thoughts';
          said = said || element(e, 'p', 'said');
          said.append(delta.content);
          content += delta.content;
        }
        if (chunk.choices[0].finish_reason === 'length') element(e, 'p', 'quiet', 'Cut off at the limit of the context.');
      });
    }
    if (!ended) throw new Error('the answer broke off');
    if (!said) element(e, 'p', 'quiet', 'No answer came.');
  } catch (error) {
    if (error.name === 'AbortError') element(e, 'p', 'quiet', 'Stopped.');
    else wrong(error.message);
  } finally {
    wait.remove();
    if (fold) fold.firstChild.textContent = 'Thoughts';
    if (content) messages.push({ role: 'assistant', content });
    else { messages.pop(); }
    running = null;
    busy(false);
    watch();
  }
}

function busy(on) {
  $('send').hidden = on;
  $('stop').hidden = !on;
  $('now').hidden = true;
  $('log').setAttribute('aria-busy', String(on));
}

function send() {
  const text = $('text').value.trim();
  if (!text || running) return;
  $('text').value = '';
  grow();
  ask(text);
}

function grow() {
  $('text').style.height = 'auto';
  $('text').style.height = $('text').scrollHeight + 2 + 'px';
}

$('ask').addEventListener('submit', event => { event.preventDefault(); send(); });
$('text').addEventListener('input', grow);
$('text').addEventListener('keydown', event => {
  // Enter that chooses a word of an input method is not meant for us: isComposing says so, and 229 in a browser that ends the composition first.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  send();
});
document.addEventListener('keydown', event => { if (event.key === 'Escape' && running && !event.isComposing) running.stop.abort(); });
$('stop').addEventListener('click', () => running && running.stop.abort());
$('now').addEventListener('click', () => {
  if (!running) return;
  $('now').hidden = true;
  fetch('/v1/pond/stop-thinking', { method: 'POST', headers: headers({ 'Content-Type': 'application/json' }), body: JSON.stringify({ id: running.request }) });
});
$('fresh').addEventListener('click', () => {
  if (running) running.stop.abort();
  messages.length = 0;
  $('log').replaceChildren();
  $('text').focus();
});
$('keyform').addEventListener('submit', event => {
  event.preventDefault();
  key = $('key').value.trim();
  sessionStorage.setItem('pond-key', key);
  model = '';
  watch();
});
for (const button of document.querySelectorAll('[data-copy]')) button.addEventListener('click', () => copy(button));
snippets();
watch();
setInterval(() => { if (!document.hidden) watch(); }, 2000);
