// Package openai holds the wire types of the OpenAI API and the decoding of its requests. Anthropic's Messages API stands beside it, in the files
// anthropic_*.go: it is decoded into the same [ChatRequest], so that one engine and one set of rules serve both.
//
// It is tolerant where clients differ without harm and strict where a request would otherwise be answered with something else
// than it asked for:
//
//   - null is the same as absent, for every field;
//   - a value of the wrong type or out of range is an [Error] whose Param names the field, also deep in a message;
//   - a field of the API that Pond does not implement is an Error that names it, unless its value asks for nothing (refused.go);
//   - a field that neither the API nor Pond knows is ignored and listed in Ignored, which the server sends back as a header.
//
// The package knows nothing of models, engines or HTTP and imports nothing of Pond. Start reading at [DecodeChat].
package openai
