// The official OpenAI SDK for JavaScript.
import OpenAI from 'openai';
import { assert, idle, model, ok, parameters, question, schema, url } from './pond.mjs';

const client = new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 });
const ask = { model, messages: [{ role: 'user', content: question }], temperature: 0, seed: 1, max_completion_tokens: 300 };

const whole = await client.chat.completions.create({ ...ask, reasoning_effort: 'none' });
assert(whole.choices[0].message.content, 'an answer');
ok('chat');

let text = '', usage;
for await (const chunk of await client.chat.completions.create({ ...ask, reasoning_effort: 'none', stream: true, stream_options: { include_usage: true } })) {
  text += chunk.choices[0]?.delta.content ?? '';
  usage = chunk.usage ?? usage;
}
assert(text === whole.choices[0].message.content && usage.completion_tokens === whole.usage.completion_tokens, 'the same streamed as whole');
ok('stream, the same as whole');

const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Get the weather of a city', parameters } }];
const first = await client.chat.completions.stream({ ...ask, tools, tool_choice: { type: 'function', function: { name: 'get_weather' } } }).finalChatCompletion();
const call = first.choices[0].message.tool_calls[0];
assert(call.function.name === 'get_weather' && typeof JSON.parse(call.function.arguments) === 'object', 'a call');
const second = await client.chat.completions.create({ ...ask, tools, messages: [...ask.messages, first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'Rain, 7 degrees.' }] });
assert(second.usage.prompt_tokens_details.cached_tokens > 0, 'cached tokens');
ok('tools, and back');

const structured = await client.chat.completions.create({ ...ask, reasoning_effort: 'none', response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema } } });
assert(Number.isInteger(JSON.parse(structured.choices[0].message.content).degrees), 'degrees');
ok('structured output');

const stream = await client.chat.completions.create({ ...ask, temperature: 2, max_completion_tokens: 3000, stream: true });
for await (const _ of stream) break;
await idle();
ok('cancellation');

for (const [change, status, param] of [[{ model: 'gpt-4o' }, 404, 'model'], [{ temperature: 9 }, 400, 'temperature']]) {
  const error = await client.chat.completions.create({ ...ask, ...change }).then(() => null, e => e);
  assert(error instanceof OpenAI.APIError && error.status === status && error.param === param, 'status ' + status + ' about ' + param + ', got ' + error);
}
ok('errors');

const response = await client.responses.create({ model, input: question, temperature: 0, max_output_tokens: 200, reasoning: { effort: 'none' } });
const kinds = [];
for await (const event of await client.responses.create({ model, input: question, temperature: 0, max_output_tokens: 200, reasoning: { effort: 'none' }, stream: true })) kinds.push(event);
assert(kinds.every((e, i) => e.sequence_number === i) && kinds.at(-1).response.output[0].content[0].text === response.output_text, 'events in order with the same text');
ok('responses');
