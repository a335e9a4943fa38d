package server

import (
	"pond/inference/chat"
	"pond/server/openai"
)

// conversation maps the wire's turns to the engine's. What the template would refuse is left to chat.Normalise, which names the
// path in the same words as the decoder does.
func conversation(req *openai.ChatRequest) chat.Conversation {
	c := chat.Conversation{Tools: req.Tools, Thinking: req.Thinking, PreserveThinking: req.PreserveThinking}
	for _, m := range req.Messages {
		turn := chat.Message{Role: m.Role, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, Name: m.Name}
		turn.Content.Null = m.Content == nil
		for _, text := range m.Content {
			turn.Content.Parts = append(turn.Content.Parts, chat.Part{Type: "text", Text: text})
		}
		for _, call := range m.ToolCalls {
			turn.ToolCalls = append(turn.ToolCalls, chat.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
		}
		c.Messages = append(c.Messages, turn)
	}
	return c
}
