package server

import (
	"pond/inference/chat"
	"pond/server/openai"
)

// Conversation reads the body of a chat request as POST /v1/chat/completions does, without asking anything: for
// `pond inspect prompt`.
func Conversation(body []byte) (chat.Conversation, error) {
	req, err := openai.DecodeChat(body)
	if err != nil {
		return chat.Conversation{}, err
	}
	return conversation(req), nil
}
