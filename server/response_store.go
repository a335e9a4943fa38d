package server

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"pond/server/openai"
)

// Bounds of the responses that are kept, in memory and until the server ends. The one unused longest goes first.
const (
	maxStored      = 1000
	maxStoredBytes = 64 << 20
)

// stored is one kept response with what a later one needs of it.
type stored struct {
	response openai.Response
	input    []json.RawMessage // items with ids, oldest first
	messages []openai.Message  // the whole conversation, without instructions, with the answer
	cancel   context.CancelFunc
	running  *work // of a response in the background that has not ended
	bytes    int64
}

// responseStore keeps responses. Its zero value is empty.
type responseStore struct {
	mu    sync.Mutex // protects all
	byID  map[string]*list.Element
	order list.List // of *stored, least lately used first
	items map[string]json.RawMessage
	bytes int64
}

// put keeps a response, or a newer state of it, and lets older ones go.
func (r *responseStore) put(s *stored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID, r.items = map[string]*list.Element{}, map[string]json.RawMessage{}
	}
	r.remove(s.response.ID)
	s.bytes = sizeOf(s)
	r.byID[s.response.ID] = r.order.PushBack(s)
	r.bytes += s.bytes
	for _, item := range s.response.Output {
		r.items[item.ID], _ = json.Marshal(item)
	}
	for e := r.order.Front(); e != nil && (r.order.Len() > maxStored || r.bytes > maxStoredBytes); {
		next := e.Next()
		if old := e.Value.(*stored); old.running == nil && old != s {
			r.remove(old.response.ID)
		}
		e = next
	}
}

// update replaces a response that is still kept; one that was deleted meanwhile stays deleted.
func (r *responseStore) update(s *stored) {
	r.mu.Lock()
	_, kept := r.byID[s.response.ID]
	r.mu.Unlock()
	if kept {
		r.put(s)
	}
}

// remove forgets a response; the caller holds mu.
func (r *responseStore) remove(id string) *stored {
	e, ok := r.byID[id]
	if !ok {
		return nil
	}
	s := e.Value.(*stored)
	r.order.Remove(e)
	delete(r.byID, id)
	r.bytes -= s.bytes
	for _, item := range s.response.Output {
		delete(r.items, item.ID)
	}
	return s
}

// get gives a kept response, which nobody changes.
func (r *responseStore) get(id, param string) (*stored, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byID[id]
	if !ok {
		return nil, notStored(id, param)
	}
	r.order.MoveToBack(e)
	return e.Value.(*stored), nil
}

// drop forgets a response for good.
func (r *responseStore) drop(id string) error {
	r.mu.Lock()
	s := r.remove(id)
	r.mu.Unlock()
	if s == nil {
		return notStored(id, "id")
	}
	if s.cancel != nil {
		s.cancel()
	}
	return nil
}

// item gives an item of a kept response's output.
func (r *responseStore) item(id string) (json.RawMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, ok := r.items[id]
	return slices.Clone(raw), ok
}

func (r *responseStore) size() (count int, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len(), r.bytes
}

func notStored(id, param string) error {
	return &refusal{status: http.StatusNotFound, code: "response_not_found", param: param,
		message: fmt.Sprintf("%s: got %q, which is not stored (any more): the last %d responses are kept, in memory, while the model stays loaded", param, id, maxStored)}
}

// sizeOf is about what a stored response costs.
func sizeOf(s *stored) int64 {
	text, _ := json.Marshal(s.response)
	n := 2 * len(text) // the items stand in the index again
	for _, raw := range s.input {
		n += len(raw)
	}
	for _, m := range s.messages {
		n += 200
		for _, c := range m.Content {
			n += len(c)
		}
		if m.Reasoning != nil {
			n += len(*m.Reasoning)
		}
		for _, call := range m.ToolCalls {
			n += len(call.Arguments) + 100
		}
	}
	return int64(n)
}
