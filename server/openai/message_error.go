package openai

// MessageError is the body of every answer of Anthropic's API that is not a success, and of the error event of its streams.
type MessageError struct {
	Type      string             `json:"type"` // "error"
	Error     MessageErrorDetail `json:"error"`
	RequestID string             `json:"request_id,omitempty"`
}

// MessageErrorDetail says what went wrong.
type MessageErrorDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// NewMessageError builds a body.
func NewMessageError(kind, message, requestID string) MessageError {
	return MessageError{Type: "error", Error: MessageErrorDetail{kind, message}, RequestID: requestID}
}
