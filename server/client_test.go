package server

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"pond/inference"
)

// The official Go client as a user has it: only the base URL is changed.
func client(l *live) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(l.url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func question(model, text string) sdk.ChatCompletionNewParams {
	return sdk.ChatCompletionNewParams{Model: model, Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage(text)},
		MaxCompletionTokens: sdk.Int(10), Seed: sdk.Int(4)}
}

func TestClient(t *testing.T) {
	l := serve(t, Options{})
	ctx, c := context.Background(), client(l)
	models, err := c.Models.List(ctx)
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "tiny" {
		t.Fatalf("models: got %+v, %v", models, err)
	}
	if m, err := c.Models.Get(ctx, "tiny"); err != nil || m.OwnedBy != "pond" {
		t.Errorf("model: got %+v, %v", m, err)
	}
	p := question("tiny", "hello")
	whole, err := c.Chat.Completions.New(ctx, p, option.WithJSONSet("enable_thinking", false))
	if err != nil {
		t.Fatal(err)
	}
	if whole.Choices[0].Message.Content == "" || whole.Choices[0].FinishReason != "length" || whole.Usage.CompletionTokens != 10 {
		t.Errorf("got %s", whole.RawJSON())
	}
	p.StreamOptions.IncludeUsage = sdk.Bool(true)
	stream := c.Chat.Completions.NewStreaming(ctx, p, option.WithJSONSet("enable_thinking", false))
	var folded sdk.ChatCompletionAccumulator
	for stream.Next() {
		if !folded.AddChunk(stream.Current()) {
			t.Fatalf("the client cannot add the chunk %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := folded.Choices[0].Message.Content, whole.Choices[0].Message.Content; got != want || folded.Usage.TotalTokens != whole.Usage.TotalTokens {
		t.Errorf("streamed: got %q and %d tokens, want %q and %d", got, folded.Usage.TotalTokens, want, whole.Usage.TotalTokens)
	}
	text, err := c.Completions.New(ctx, sdk.CompletionNewParams{Model: "tiny", Prompt: sdk.CompletionNewParamsPromptUnion{OfString: sdk.String("go on")}, MaxTokens: sdk.Int(4), LogitBias: map[string]int64{"104": 100}})
	if err != nil || text.Choices[0].FinishReason != "length" {
		t.Errorf("completion: got %+v, %v", text, err)
	}
	// Errors arrive as the client's own type, with status, code and param.
	p.Model = "gpt-4o"
	_, err = c.Chat.Completions.New(ctx, p)
	var apiError *sdk.Error
	if !errors.As(err, &apiError) || apiError.StatusCode != 404 || apiError.Code != "model_not_found" || apiError.Param != "model" {
		t.Errorf("unknown model: got %v, want the client's 404 error", err)
	}
	p.Model, p.Temperature = "tiny", sdk.Float(9)
	stream = c.Chat.Completions.NewStreaming(ctx, p)
	if stream.Next() || !errors.As(stream.Err(), &apiError) || apiError.StatusCode != 400 || apiError.Param != "temperature" {
		t.Errorf("wrong temperature: got %v, want the client's 400 error", stream.Err())
	}
	// Leaving a stream in the middle frees the device.
	p.Temperature, p.MaxCompletionTokens = sdk.Float(2), sdk.Int(2000)
	stream = c.Chat.Completions.NewStreaming(ctx, p)
	stream.Next()
	stream.Close()
	l.idle()
	// A history with tool calls, as the client writes it.
	p = question("tiny", "what is the weather?")
	p.Tools = []sdk.ChatCompletionToolUnionParam{weatherTool()}
	call := sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{ID: "call_1",
		Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "get_weather", Arguments: `{"city":"Oslo"}`}}}
	p.Messages = append(p.Messages, sdk.ChatCompletionMessageParamUnion{OfAssistant: &sdk.ChatCompletionAssistantMessageParam{ToolCalls: []sdk.ChatCompletionMessageToolCallUnionParam{call}}},
		sdk.ToolMessage("rain", "call_1"))
	answer, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	p.Messages = append(p.Messages, answer.Choices[0].Message.ToParam(), sdk.UserMessage("and tomorrow?"))
	if _, err := c.Chat.Completions.New(ctx, p); err != nil {
		t.Errorf("history with the client's own copy of our answer: %v", err)
	}
}

// A client that offers no tools used to get a call of one that the model made up, with no answer beside it.
func TestNoCallsWithoutTools(t *testing.T) {
	l := serve(t, Options{Engine: demo(t)})
	c := client(l)
	for _, system := range []string{"Be brief.", "You have the tool get_weather. Use it."} {
		p := question("pond-demo", "What is the weather in Oslo?")
		p.Messages = append([]sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage(system)}, p.Messages...)
		p.Temperature, p.MaxCompletionTokens = sdk.Float(0), sdk.Int(60)
		answer, err := c.Chat.Completions.New(context.Background(), p, option.WithJSONSet("enable_thinking", false))
		if err != nil {
			t.Fatal(err)
		}
		if m := answer.Choices[0].Message; len(m.ToolCalls) > 0 || m.Content == "" || answer.Choices[0].FinishReason == "tool_calls" {
			t.Errorf("%q: got %s, want text and no calls", system, answer.RawJSON())
		}
	}
}

// What agents use beyond text: objects by a schema, calls that must be made, several answers, and the Responses API, streamed and not.
func TestClientForms(t *testing.T) {
	l := serve(t, Options{})
	ctx, c := context.Background(), client(l)
	off := option.WithJSONSet("enable_thinking", false)
	p := question("tiny", "answer")
	p.MaxCompletionTokens = sdk.Int(200)
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "a", Strict: sdk.Bool(true),
		Schema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}, "required": []string{"ok"}, "additionalProperties": false}}}
	answer, err := c.Chat.Completions.New(ctx, p, off)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]bool
	if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &value); err != nil || len(value) != 1 {
		t.Errorf("structured: got %s, %v", answer.Choices[0].Message.Content, err)
	}
	p = question("tiny", "weather?")
	p.MaxCompletionTokens, p.ParallelToolCalls = sdk.Int(400), sdk.Bool(false)
	p.Tools = []sdk.ChatCompletionToolUnionParam{sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "now", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}}})}
	p.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: "now"})
	if answer, err = c.Chat.Completions.New(ctx, p, off); err != nil {
		t.Fatal(err)
	}
	if calls := answer.Choices[0].Message.ToolCalls; len(calls) != 1 || calls[0].Function.Name != "now" || answer.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("named tool: got %s", answer.RawJSON())
	}
	p = question("tiny", "x")
	p.N = sdk.Int(2)
	if answer, err = c.Chat.Completions.New(ctx, p, off); err != nil || len(answer.Choices) != 2 {
		t.Errorf("n: got %+v, %v", answer, err)
	}
	// A context that ends takes the request with it.
	ending, cancel := context.WithCancel(ctx)
	p.N, p.Temperature, p.MaxCompletionTokens = sdk.Int(1), sdk.Float(2), sdk.Int(2000)
	stream := c.Chat.Completions.NewStreaming(ending, p, off)
	stream.Next()
	cancel()
	for stream.Next() {
	}
	l.idle()

	r := responses.ResponseNewParams{Model: "tiny", Input: responses.ResponseNewParamsInputUnion{OfString: sdk.String("hello")}, MaxOutputTokens: sdk.Int(12)}
	seed := option.WithJSONSet("logit_bias", map[string]int{"104": 100}) // so that it does not end before its limit, on any machine
	whole, err := c.Responses.New(ctx, r, off, seed)
	if err != nil || whole.Status != responses.ResponseStatusIncomplete || whole.OutputText() == "" {
		t.Fatalf("response: got %+v, %v", whole, err)
	}
	var text string
	events := c.Responses.NewStreaming(ctx, r, off, seed)
	for events.Next() {
		text += events.Current().AsResponseOutputTextDelta().Delta
	}
	if events.Err() != nil || text != whole.OutputText() {
		t.Errorf("streamed response: got %q, %v, want %q", text, events.Err(), whole.OutputText())
	}
	if kept, err := c.Responses.Get(ctx, whole.ID, responses.ResponseGetParams{}); err != nil || kept.OutputText() != whole.OutputText() {
		t.Errorf("stored response: got %+v, %v", kept, err)
	}
	if err := c.Responses.Delete(ctx, whole.ID); err != nil {
		t.Errorf("delete: %v", err)
	}
	var apiError *sdk.Error
	if _, err := c.Responses.Get(ctx, whole.ID, responses.ResponseGetParams{}); !errors.As(err, &apiError) || apiError.StatusCode != 404 {
		t.Errorf("deleted response: got %v, want the client's 404 error", err)
	}
}

func weatherTool() sdk.ChatCompletionToolUnionParam {
	return sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "get_weather", Description: sdk.String("Get the weather of a city"),
		Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}})
}

// demo opens the demo model, or skips.
func demo(t *testing.T) *inference.Engine {
	t.Helper()
	const dir = "../assets/demo"
	if _, err := os.Stat(dir + "/model.safetensors.index.json"); err != nil {
		if _, err := os.Stat(dir + "/model.safetensors"); err != nil {
			t.Skip("the demo model's weights are not in assets/demo")
		}
	}
	e, err := inference.Open(context.Background(), inference.Options{Model: inference.FromDir(dir), ID: "pond-demo", ContextTokens: 2048})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// One round with a tool, as an agent does it: the model calls, the client answers, the model speaks.
func TestClientToolRoundTrip(t *testing.T) {
	l := serve(t, Options{Engine: demo(t)})
	ctx, c := context.Background(), client(l)
	p := question("pond-demo", "What is the weather in Oslo?")
	p.Temperature, p.MaxCompletionTokens = sdk.Float(0), sdk.Int(300)
	p.Tools = []sdk.ChatCompletionToolUnionParam{weatherTool()}
	p.StreamOptions.IncludeUsage = sdk.Bool(true)
	stream := c.Chat.Completions.NewStreaming(ctx, p)
	var folded sdk.ChatCompletionAccumulator
	for stream.Next() {
		folded.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	message := folded.Choices[0].Message
	if folded.Choices[0].FinishReason != "tool_calls" || len(message.ToolCalls) != 1 {
		t.Fatalf("got finish %q and content %q, want one tool call", folded.Choices[0].FinishReason, message.Content)
	}
	call := message.ToolCalls[0]
	var arguments struct{ City string }
	if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil || call.Function.Name != "get_weather" || !strings.Contains(arguments.City, "Oslo") {
		t.Errorf("got call %s(%s), %v", call.Function.Name, call.Function.Arguments, err)
	}
	p.StreamOptions = sdk.ChatCompletionStreamOptionsParam{}
	whole, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if calls := whole.Choices[0].Message.ToolCalls; len(calls) != 1 || calls[0].Function.Arguments != call.Function.Arguments || whole.Usage.CompletionTokens != folded.Usage.CompletionTokens {
		t.Errorf("not streamed: got %s, want the call of the stream", whole.RawJSON())
	}
	p.Messages = append(p.Messages, message.ToParam(), sdk.ToolMessage("Rain, 7 degrees.", call.ID))
	answer, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Choices[0].FinishReason != "stop" || strings.TrimSpace(answer.Choices[0].Message.Content) == "" {
		t.Errorf("after the tool's answer: got %s", answer.RawJSON())
	}
	if answer.Usage.PromptTokensDetails.CachedTokens == 0 {
		t.Errorf("after the tool's answer: no cached tokens of %d", answer.Usage.PromptTokens)
	}
}
