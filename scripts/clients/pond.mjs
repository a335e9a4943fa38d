// What the JavaScript clients of `make clients` share: where the server is, and that it is idle again after a client has left.
export const url = process.env.POND_URL, model = process.env.POND_MODEL;
export const question = 'What is the weather in Oslo?';
export const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
export const schema = {
  type: 'object', additionalProperties: false, required: ['city', 'degrees'],
  properties: { city: { type: 'string', maxLength: 20 }, degrees: { type: 'integer', minimum: -60, maximum: 60 } },
};

export function ok(what) { console.log('ok', what); }

export function assert(condition, what) {
  if (!condition) throw new Error('want ' + what);
}

export async function idle() {
  for (let i = 0; i < 300; i++) {
    if ((await (await fetch(url + '/health')).json()).in_flight === 0) return;
    await new Promise(done => setTimeout(done, 100));
  }
  throw new Error('the server is still busy 30 seconds after the client left');
}
