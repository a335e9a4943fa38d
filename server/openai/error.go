package openai

import "fmt"

// Error says why a request cannot be accepted. The server maps it to status 400.
type Error struct {
	Param   string // path of the field, like "messages[3].content[0]"; "" when the body as a whole is meant
	Code    string // machine-readable reason; "" when the API has none for it
	Message string
}

func (e *Error) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

// Codes of Error.Code.
const (
	CodeInvalidJSON  = "invalid_json"
	CodeInvalidType  = "invalid_type"
	CodeInvalidValue = "invalid_value"
	CodeMissing      = "missing_required_parameter"
	CodeUnsupported  = "unsupported_parameter"
)

// ErrorBody is the body of every answer that is not a success, and of the error event of a stream.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail has all four keys on the wire, null where there is nothing to say.
type ErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// NewErrorBody builds a body; empty param and code become null.
func NewErrorBody(kind, message, param, code string) ErrorBody {
	d := ErrorDetail{Message: message, Type: kind}
	if param != "" {
		d.Param = &param
	}
	if code != "" {
		d.Code = &code
	}
	return ErrorBody{Error: d}
}

func errorf(param, code, format string, args ...any) *Error {
	return &Error{Param: param, Code: code, Message: fmt.Sprintf(format, args...)}
}
