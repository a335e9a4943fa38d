package app

import (
	"fmt"
	"runtime"
	"strings"
)

// Endpoint is the base URL of an address. An address that means every interface is called by the loopback one: no client can call
// 0.0.0.0.
func Endpoint(address string) string {
	for _, all := range []string{"0.0.0.0:", "[::]:"} {
		if port, ok := strings.CutPrefix(address, all); ok {
			address = "127.0.0.1:" + port
		}
	}
	return "http://" + address + "/v1"
}

// CurlLine is a command that asks the endpoint one question and works as it stands. withKey adds the header that reads the
// key from the environment.
func CurlLine(address, model string, withKey bool) string {
	key := ""
	if withKey {
		key = ` -H "Authorization: Bearer $POND_API_KEY"`
	}
	return fmt.Sprintf(`curl -s %s/chat/completions -H 'Content-Type: application/json'%s -d '{"model":"%s","messages":[{"role":"user","content":"Hello! Who are you?"}]}'`,
		Endpoint(address), key, model)
}

// Snippet is what CopyEndpoint, CopyCurl, CopyPython, CopyJavaScript and CopyEnvironment put on the clipboard; empty for another action. What it gives
// runs as it stands; a key is read from POND_API_KEY, and never part of it, so that a snippet can be shown to others.
func (s State) Snippet(a Action) string {
	key := `"pond"` // the clients want one, whatever it is
	switch a {
	case CopyEndpoint:
		return s.Endpoint()
	case CopyCurl:
		return CurlLine(s.Address, s.Model, s.NeedsKey)
	case CopyPython:
		head := ""
		if s.NeedsKey {
			head, key = "import os\n", `os.environ["POND_API_KEY"]`
		}
		return fmt.Sprintf(`%sfrom openai import OpenAI

client = OpenAI(base_url="%s", api_key=%s)
answer = client.chat.completions.create(
    model="%s",
    messages=[{"role": "user", "content": "Hello! Who are you?"}],
)
print(answer.choices[0].message.content)
`, head, s.Endpoint(), key, s.Model)
	case CopyJavaScript:
		if s.NeedsKey {
			key = "process.env.POND_API_KEY"
		}
		return fmt.Sprintf(`import OpenAI from "openai";

const client = new OpenAI({ baseURL: "%s", apiKey: %s });
const answer = await client.chat.completions.create({
  model: "%s",
  messages: [{ role: "user", content: "Hello! Who are you?" }],
});
console.log(answer.choices[0].message.content);
`, s.Endpoint(), key, s.Model)
	case CopyEnvironment:
		key = "pond"
		if s.NeedsKey {
			key = `"$POND_API_KEY"`
		}
		return fmt.Sprintf("export OPENAI_BASE_URL=%s\nexport OPENAI_API_KEY=%s\nexport OPENAI_MODEL=%s\n", s.Endpoint(), key, s.Model)
	}
	return ""
}

// machineWord is what people call the computer.
func machineWord() string {
	if runtime.GOOS == "darwin" {
		return "Mac"
	}
	return "machine"
}
