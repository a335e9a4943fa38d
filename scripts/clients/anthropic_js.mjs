// Anthropic's SDK for JavaScript.
import Anthropic from '@anthropic-ai/sdk';
import { assert, idle, model, ok, parameters, question, url } from './pond.mjs';

const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const ask = { model, messages: [{ role: 'user', content: question }], max_tokens: 300, temperature: 0 };

const whole = await client.messages.create(ask);
assert(whole.content[0].text, 'an answer');
ok('message');

const streamed = await client.messages.stream(ask).finalMessage();
assert(streamed.content[0].text === whole.content[0].text && streamed.stop_reason === whole.stop_reason, 'the same streamed as whole');
ok('stream, the same as whole');

const tools = [{ name: 'get_weather', description: 'Get the weather of a city', input_schema: parameters }];
const first = await client.messages.stream({ ...ask, tools, tool_choice: { type: 'any' } }).finalMessage();
const call = first.content.find(b => b.type === 'tool_use');
assert(first.stop_reason === 'tool_use' && call.name === 'get_weather', 'a call');
await client.messages.create({ ...ask, tools, messages: [...ask.messages, { role: 'assistant', content: first.content }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Rain.' }] }] });
ok('tools, and back');

const stream = client.messages.stream({ ...ask, temperature: 1, max_tokens: 3000 });
for await (const _ of stream) break;
stream.abort();
await idle();
ok('cancellation');

const error = await client.messages.create({ ...ask, model: 'claude-sonnet' }).then(() => null, e => e);
assert(error instanceof Anthropic.NotFoundError && error.error.type === 'error' && error.requestID?.startsWith('req_'), 'a 404 with its request id, got ' + error);
ok('errors');
