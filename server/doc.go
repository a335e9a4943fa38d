// Package server is Pond's OpenAI-compatible endpoint: routes, guard, streaming and the mapping of errors to answers.
//
// It speaks HTTP to clients (on Echo) and conversations to the engine; it knows nothing about tensors, devices or prompts as
// tokens. The wire types are in server/openai. Start reading at routes.go: every path is there, one endpoint a file behind it.
// A request goes guard.go -> the endpoint's file -> openai's decoding -> generate.go -> the engine -> stream.go or one JSON body.
package server
