package server

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pond/inference"
)

// metrics counts what the endpoint does, on a registry of its own. No label holds anything that a client wrote: paths are those of the route
// table.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec   // method, path, status
	seconds  *prometheus.HistogramVec // path
	first    prometheus.Histogram
	tokens   *prometheus.CounterVec // kind
	answers  *prometheus.CounterVec // finish
}

// newMetrics registers all of them; engine and inFlight are read when someone asks.
func newMetrics(engine *inference.Engine, version string, inFlight func() int) *metrics {
	// From a word of the demo model to a long answer of the full one.
	spans := []float64{.01, .03, .1, .3, 1, 3, 10, 30, 100, 300, 1000}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pond_requests_total", Help: "Requests by path and status."}, []string{"method", "path", "status"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pond_request_seconds", Help: "Time from a request to the end of its answer.", Buckets: spans}, []string{"path"}),
		first:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pond_first_token_seconds", Help: "Time from a request to the first of its answer.", Buckets: spans}),
		tokens:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pond_tokens_total", Help: "Tokens of whole answers and their prompts: cached are part of prompt, reasoning of completion."}, []string{"kind"}),
		answers:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pond_answers_total", Help: "Answers by what ended them."}, []string{"finish"}),
	}
	info := engine.Info()
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "pond_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "model": info.ID, "executor": info.Executor}})
	build.Set(1)
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	chosen := func(where string, read func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "pond_tokens_chosen_total", Help: "Tokens of answers by what chose them: the host does where forms, log-probabilities or wide filters ask for all logits.",
			ConstLabels: prometheus.Labels{"by": where}}, func() float64 { return float64(read()) })
	}
	m.registry.MustRegister(m.requests, m.seconds, m.first, m.tokens, m.answers, build,
		chosen("device", func() int64 { return engine.Stats().ChosenOnDevice }), chosen("host", func() int64 { return engine.Stats().ChosenOnHost }),
		gauge("pond_in_flight", "Requests whose answers run or wait.", func() float64 { return float64(inFlight()) }),
		gauge("pond_queued", "Answers that wait for the device.", func() float64 { return float64(engine.Stats().Queued) }),
		gauge("pond_active", "Answers that the device works on.", func() float64 { return float64(engine.Stats().Active) }),
		gauge("pond_tokens_per_second", "Decoded tokens in the last second.", func() float64 { return engine.Stats().TokensPerSecond }),
		gauge("pond_snapshot_bytes", "Memory of kept conversations.", func() float64 { s := engine.Stats(); return float64(s.SnapshotBytes + s.ContextBytes) }),
		gauge("pond_weight_bytes", "Size of the model's weights.", func() float64 { return float64(info.WeightBytes) }),
		gauge("pond_context_tokens", "Most tokens of prompt and answer together.", func() float64 { return float64(info.ContextTokens) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// request counts one request that is over.
func (m *metrics) request(c echo.Context, status int, took time.Duration) {
	path := c.Path()
	if path == "" {
		path = "other"
	}
	m.requests.WithLabelValues(knownMethod(c.Request().Method), path, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(path).Observe(took.Seconds())
}

// knownMethod bounds a label that a client could otherwise invent.
func knownMethod(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return "other"
}

// ended counts the answers of one work.
func (m *metrics) ended(w *work) {
	if first := w.first.Load(); first > 0 {
		m.first.Observe(time.Duration(first).Seconds())
	}
	for _, r := range w.results {
		m.tokens.WithLabelValues("prompt").Add(float64(r.Usage.PromptTokens))
		m.tokens.WithLabelValues("cached").Add(float64(r.Usage.CachedTokens))
		m.tokens.WithLabelValues("completion").Add(float64(r.Usage.CompletionTokens))
		m.tokens.WithLabelValues("reasoning").Add(float64(r.Usage.ReasoningTokens))
		m.answers.WithLabelValues(string(r.Finish)).Inc()
	}
	if broken := len(w.answers) - len(w.results); broken > 0 {
		m.answers.WithLabelValues("broken_off").Add(float64(broken))
	}
}

// serveMetrics answers GET /metrics in the form that the client asks for.
func (s *Server) serveMetrics(c echo.Context) error {
	promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(c.Response(), c.Request())
	return nil
}
