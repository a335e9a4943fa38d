package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sort"
	"strconv"

	"github.com/labstack/echo/v4"

	"pond/inference/chat"
	"pond/server/openai"
)

// createResponse answers POST /v1/responses.
func (s *Server) createResponse(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	req, err := openai.DecodeResponse(body, s.stored.item)
	if err != nil {
		return err
	}
	var before []openai.Message
	if req.PreviousID != "" {
		previous, err := s.stored.get(req.PreviousID, "previous_response_id")
		if err != nil {
			return err
		}
		if previous.running != nil {
			return &openai.Error{Param: "previous_response_id", Code: openai.CodeInvalidValue, Message: "got a response that is not complete yet: wait for it"}
		}
		before = previous.messages
	}
	asked := req.ChatRequest
	asked.Messages = nil
	if req.Instructions != nil {
		asked.Messages = append(asked.Messages, openai.Message{Role: "system", Content: []string{*req.Instructions}})
	}
	asked.Messages = append(append(asked.Messages, before...), req.Messages...)
	if req.Truncate {
		s.truncate(&asked)
	}
	g, err := s.generation(req.Generation, req.Thinking == nil || *req.Thinking)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if req.Background {
		ctx = s.base
	}
	w, head, err := s.beginChat(c, ctx, &asked, "resp_")
	if err != nil {
		return err
	}
	r := newResponse(req, head, before, g)
	if req.Background {
		return s.answerLater(c, w, r)
	}
	defer w.end()
	if req.Stream {
		return s.stream(c, w, func(out *eventStream) encoder {
			return &responseStream{eventStream: out, response: r, pad: req.Obfuscate, keep: s.keep}
		})
	}
	choices, err := w.wait()
	if err != nil {
		return err
	}
	r.finish(choices[0])
	s.keep(r, choices[0].Answer)
	return writeJSON(c, http.StatusOK, r.object)
}

// finish fills in an answer that was not streamed.
func (r *response) finish(w choice) {
	list := blocksOf(w.events)
	ids := make([]string, len(list))
	for i, b := range list {
		ids[i] = r.itemID(b)
	}
	r.complete(list, ids, w.Result)
}

// keep stores a response that asks for it.
func (s *Server) keep(r *response, answer chat.Answer) {
	if r.req.Store {
		s.stored.put(r.keep(answer))
	}
}

// answerLater lets a response run without its client, and says so.
func (s *Server) answerLater(c echo.Context, w *work, r *response) error {
	r.object.Status = "queued"
	kept := &stored{response: r.object, input: r.input, cancel: w.cancel, running: w}
	s.stored.put(kept)
	queued := r.object
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		defer w.end()
		choices, err := w.wait()
		switch {
		case err == nil:
			r.finish(choices[0])
			s.stored.update(r.keep(choices[0].Answer))
			return
		case errors.Is(err, context.Canceled):
			r.object.Status = "cancelled"
		default:
			_, f := s.describe(nil, err) // no request to speak of: it is over, and its context another one's
			r.broke(f)
			s.log.Error("response failed", "id", r.object.ID, "error", err)
		}
		s.stored.update(&stored{response: r.object, input: r.input, messages: append(r.before[:len(r.before):len(r.before)], r.req.Messages...)})
	}()
	return writeJSON(c, http.StatusOK, queued)
}

// getResponse answers GET /v1/responses/{id}.
func (s *Server) getResponse(c echo.Context) error {
	if c.QueryParam("stream") == "true" {
		return &openai.Error{Param: "stream", Code: openai.CodeUnsupported, Message: "events are not kept: leave it out, and ask again until the status is completed"}
	}
	kept, err := s.stored.get(c.Param("id"), "id")
	if err != nil {
		return err
	}
	r := kept.response
	if kept.running != nil && kept.running.progress.total.Load() > 0 {
		r.Status = "in_progress"
	}
	return writeJSON(c, http.StatusOK, r)
}

// deleteResponse answers DELETE /v1/responses/{id}.
func (s *Server) deleteResponse(c echo.Context) error {
	id := c.Param("id")
	if err := s.stored.drop(id); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, openai.ResponseDeleted{ID: id, Object: "response", Deleted: true})
}

// cancelResponse answers POST /v1/responses/{id}/cancel.
func (s *Server) cancelResponse(c echo.Context) error {
	kept, err := s.stored.get(c.Param("id"), "id")
	if err != nil {
		return err
	}
	r := kept.response
	if !r.Background {
		return &openai.Error{Param: "id", Code: openai.CodeInvalidValue, Message: "only a response with \"background\": true can be cancelled; to end another, close its connection"}
	}
	if kept.running != nil {
		kept.cancel()
		r.Status = "cancelled"
	}
	return writeJSON(c, http.StatusOK, r)
}

// inputItems answers GET /v1/responses/{id}/input_items with limit, order and after.
func (s *Server) inputItems(c echo.Context) error {
	kept, err := s.stored.get(c.Param("id"), "id")
	if err != nil {
		return err
	}
	limit := 20
	if text := c.QueryParam("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 100 {
			return &openai.Error{Param: "limit", Code: openai.CodeInvalidValue, Message: "got " + strconv.Quote(text) + ", want 1 to 100"}
		}
	}
	items := slices.Clone(kept.input)
	switch order := c.QueryParam("order"); order {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return &openai.Error{Param: "order", Code: openai.CodeInvalidValue, Message: "got " + strconv.Quote(order) + ", want asc or desc"}
	}
	if after := c.QueryParam("after"); after != "" {
		at := slices.IndexFunc(items, func(raw json.RawMessage) bool { return idOf(raw) == after })
		if at < 0 {
			return &openai.Error{Param: "after", Code: openai.CodeInvalidValue, Message: "got " + strconv.Quote(after) + ", want the id of an item"}
		}
		items = items[at+1:]
	}
	list := openai.ItemList{Object: openai.ObjectList, Data: items[:min(limit, len(items))], HasMore: len(items) > limit}
	if n := len(list.Data); n > 0 {
		first, last := idOf(list.Data[0]), idOf(list.Data[n-1])
		list.FirstID, list.LastID = &first, &last
	} else {
		list.Data = []json.RawMessage{}
	}
	return writeJSON(c, http.StatusOK, list)
}

func idOf(item json.RawMessage) string {
	var i struct{ ID string }
	json.Unmarshal(item, &i)
	return i.ID
}

// truncate leaves out the oldest turns behind the instructions until there is room for an answer: the one that was asked for, up to a quarter of
// the context. The last question stays in any case; what is still too long is then an error with the numbers.
func (s *Server) truncate(req *openai.ChatRequest) {
	limit := s.engine.Info().ContextTokens
	room := limit / 4
	if req.MaxTokens > 0 {
		room = min(room, req.MaxTokens)
	}
	head := 0
	for head < len(req.Messages) && (req.Messages[head].Role == "system" || req.Messages[head].Role == "developer") {
		head++
	}
	last := head
	var starts []int // of turns that a conversation can begin with
	for i := head; i < len(req.Messages); i++ {
		if req.Messages[i].Role == "user" {
			starts, last = append(starts, i), i
		}
	}
	from := func(start int) *openai.ChatRequest {
		shorter := *req
		shorter.Messages = append(req.Messages[:head:head], req.Messages[start:]...)
		return &shorter
	}
	fits := func(r *openai.ChatRequest) bool {
		ids, err := s.promptTokens(conversation(r))
		return err != nil || len(ids)+room <= limit // an error is the engine's to tell
	}
	if fits(req) || len(starts) == 0 {
		return
	}
	at := sort.Search(len(starts), func(i int) bool { return fits(from(starts[i])) })
	if at < len(starts) {
		last = starts[at]
	}
	*req = *from(last)
}

// interface check: the streams of every endpoint.
var (
	_ encoder = (*chatStream)(nil)
	_ encoder = (*completionStream)(nil)
	_ encoder = (*messageStream)(nil)
	_ encoder = (*responseStream)(nil)
)
