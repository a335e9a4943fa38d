// The Vercel AI SDK with its provider for OpenAI-compatible endpoints.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { assert, idle, model, ok, parameters, question, schema, url } from './pond.mjs';

const pond = createOpenAICompatible({ name: 'pond', baseURL: url + '/v1', includeUsage: true, supportsStructuredOutputs: true });
const ask = { model: pond(model), prompt: question, temperature: 0, seed: 1, maxOutputTokens: 300, maxRetries: 0, providerOptions: { pond: { reasoningEffort: 'none' } } };

const whole = await generateText(ask);
assert(whole.text && whole.usage.totalTokens > 0, 'an answer with usage');
ok('chat');

let text = '';
for await (const part of streamText(ask).textStream) text += part;
assert(text === whole.text, 'the same streamed as whole');
ok('stream, the same as whole');

let asked = 0;
const weather = tool({ description: 'Get the weather of a city', inputSchema: jsonSchema(parameters), execute: async () => { asked++; return 'Rain, 7 degrees.'; } });
const rounds = await generateText({ ...ask, tools: { get_weather: weather }, stopWhen: stepCountIs(2), prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? 'required' : 'none' }) });
assert(asked >= 1 && rounds.steps.length === 2, 'one round with the tool');
ok('tools, and back');

const structured = await generateText({ ...ask, output: Output.object({ schema: jsonSchema(schema) }) });
assert(Number.isInteger(structured.output.degrees), 'degrees');
ok('structured output');

const stop = new AbortController();
const running = streamText({ ...ask, temperature: 2, maxOutputTokens: 3000, abortSignal: stop.signal, onError() {} });
for await (const _ of running.fullStream) { stop.abort(); break; }
await idle();
ok('cancellation');

const error = await generateText({ ...ask, model: pond('gpt-4o') }).then(() => null, e => e);
assert(error?.statusCode === 404 && error.message.includes('pond-demo'), 'a 404 that names the model, got ' + error);
ok('errors');
