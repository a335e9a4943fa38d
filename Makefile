# Pond's targets. `make` alone lists them; a line with two hashes is its help.

GO ?= go
comma := ,
# Fyne's OpenGL binding builds three times as fast with clang; X11 alone spares the Wayland headers. migrated_fynedo says that the
# window keeps to Fyne's threading rules, which turns its run-time guesses about them off.
GUI_CC := $(shell command -v clang-19 2>/dev/null)
GUI_ENV = CGO_ENABLED=1 $(if $(GUI_CC),CC=$(GUI_CC))
GUI_TAGS = -tags migrated_fynedo$(if $(filter Linux,$(shell uname -s)),$(comma)x11)

.PHONY: help run test build gui bench bench-gpu bench-peer bench-pull test-faults fuzz schemas timelines bench-sessions soak masks clients load parity parity-mlx rehearsal screenshot screenshots bench-ui icons test-app app dmg release release-check metal-check test-gpu metal-report clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: ## install what is missing, build, start (ARGS="chat" or any other command; HEADLESS=1 without the window)
	@scripts/run.sh $(ARGS)

test: ## install what is missing, then gofmt, vet for every system, all tests
	@scripts/test.sh

build: ## build/pond without the window: plain Go, no C compiler
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$$(scripts/stamp.sh)" -o build/pond .

gui: ## build/pond with the window: needs a C compiler and, on Linux, X11 and OpenGL headers
	@$(GUI_ENV) $(GO) build $(GUI_TAGS) -trimpath -ldflags "$$(scripts/stamp.sh)" -o $(or $(OUT),build/pond) .

metal-check: ## on Linux: lint of the kernels, every kernel against its reference in three orders and checked, whole models through Metal
	@scripts/metal_check.sh

metal-report: ## on Linux: dispatches, levels, bytes and launches of the full model's plans, counted; an estimate for each chip
	@CGO_ENABLED=0 $(GO) run ./scripts/metalreport

test-gpu: ## on a Mac: the binding, the device, every kernel and whole models on its GPU
	@POND_TEST_GPU=1 POND_METAL_CHECK=1 CGO_ENABLED=0 $(GO) test -count 1 -timeout 30m ./metal/mtl ./metal/gpu ./metal ./inference/qwen36 -v
	@CGO_ENABLED=0 $(GO) run . doctor --self-test

bench: ## decode and prefill speed of the demo model, and the time from start to the first token
	@CGO_ENABLED=0 $(GO) test -run '^$$' -bench Demo -benchtime 3x ./inference

bench-gpu: ## the Metal kernels on an NVIDIA GPU beside llama.cpp: CUDA 13, g++ 12, npm, 30 GB of disk (OUT=build/gpubench)
	@scripts/gpubench/pack.sh $(or $(OUT),build/gpubench) && scripts/gpubench/run.sh $(or $(OUT),build/gpubench)

.PHONY: bench-peer
bench-peer: ## decode and prefill of the full shape beside llama.cpp: 45 GB of disk, 22 GiB of memory (ARGS="-contexts 256,4096,65536"; DIR)
	@DIR=$(DIR) scripts/benchpeer/peer.sh $(ARGS)

.PHONY: bench-http
bench-http: ## Pond's server beside llama.cpp's, models of the demo's size, by 1, 4 and 16 clients (ARGS="--allow-dirty --out DIR"; installs a wheel from PyPI)
	@DIR=$(DIR) scripts/benchpeer/http.sh $(ARGS)

bench-pull: ## rate and memory of the downloader on loopback, with hashing, without, and beside curl (BYTES=2000000000; RATE bounds it, in bytes a second)
	@POND_BENCH_BYTES=$(or $(BYTES),2000000000) POND_BENCH_RATE=$(RATE) CGO_ENABLED=0 $(GO) test ./inference/checkpoint/fetch -run TestBenchPull -count 1 -timeout 60m -v

test-faults: ## the downloader under 1,000 random schedules of faults and 100 kills, over a model of 64 MB
	@scripts/faults.sh

fuzz: ## every fuzz target for FUZZTIME (default 10m); FUZZ=word picks by file or name
	@scripts/fuzz.sh

schemas: ## 200 generated JSON schemas, answered by the demo model at temperature 1 and judged (SCHEMAS=200)
	@POND_SCHEMAS=$(or $(SCHEMAS),200) CGO_ENABLED=0 $(GO) test ./inference -run TestGeneratedSchemas -count 1 -timeout 120m -v

timelines: ## conversations that go on, branch, are edited and broken off: 10,000 answers that equal cold ones (STEPS=10000)
	@POND_TIMELINES=$(or $(STEPS),10000) CGO_ENABLED=0 $(GO) test ./inference -run TestTimelines -count 1 -timeout 600m -v

bench-sessions: ## reuse of a prompt of 12,000 tokens, gaps of a stream beside a long prompt, throughput of four clients
	@POND_BENCH_SESSIONS=1 CGO_ENABLED=0 $(GO) test ./inference -run TestBenchSessions -count 1 -timeout 60m -v

soak: ## eight clients at random, some of whom leave: nothing lost, memory flat (SOAK=30m)
	@POND_SOAK=$(or $(SOAK),30m) CGO_ENABLED=0 $(GO) test ./inference -run TestSoak -count 1 -timeout 600m -v

masks: ## what it costs to hold an answer to a schema, with a vocabulary of 248,320 tokens
	@POND_MASKS=1 CGO_ENABLED=0 $(GO) test ./inference/grammar -run TestMaskCost -count 1 -v

clients: ## SDKs of OpenAI, Anthropic, Vercel and LangChain, and a browser, against the server (CLIENTS="openai page" picks; installs from PyPI and npm)
	@scripts/clients/run.sh

load: ## 64 clients for two minutes, one in four leaving: leaks, mixed answers, overhead a token (LOAD=2m)
	@POND_LOAD=$(or $(LOAD),2m) CGO_ENABLED=0 $(GO) test ./server -run TestLoad -count 1 -timeout 30m -v

parity: ## make the reference records again with transformers (PyTorch, CPU)
	@scripts/install.sh parity
	@parity/run.sh transformers

parity-mlx: ## make the reference records again with mlx-lm on the CPU
	@scripts/install.sh parity
	@parity/run.sh mlx

rehearsal: ## pull, kill, resume, verify, load and decode a made-up model of the full size: 25 GB of disk (ARGS="-dir DIR")
	@CGO_ENABLED=0 $(GO) run ./scripts/rehearsal $(ARGS)

screenshot: ## show the real app under Xvfb, ask it something, and write build/pond.png and build/pond-chat.png
	@scripts/screenshot.sh

screenshots: ## draw every window, light and dark, at one and two pixels a unit, into assets/screenshots
	@scripts/screenshots.sh

bench-ui: ## how long Fyne's thread is held while twenty goroutines publish states and an answer grows (DURATION=1m)
	@POND_BENCH_UI=$(or $(DURATION),1m) CGO_ENABLED=0 $(GO) test ./app/ui -run 'TestTwentyPublishers|TestAClosedBlockIsDrawnOnce' -count 1 -v | grep -E "thread|FAIL|panic"

icons: ## draw the icons of the menu bar again
	@CGO_ENABLED=0 $(GO) run ./scripts/icons

test-app: ## drive the real app under Xvfb with a private D-Bus: menu, start, a question, stop, quit; and State under load with -race
	@scripts/test_app.sh

app: ## build/Pond.app: whole on a Mac, or anywhere with clang, lld and MACOS_SDK=DIR; without those around the binary without its window
	@scripts/app.sh "$(MACOS_SDK)"

dmg: ## the app, its disk image and its zip, in build
	@scripts/app.sh dmg "$(MACOS_SDK)"

release: ## every file of a release, in build/release; scripts/release.sh says what it needs, and signs and notarises on a Mac
	@MACOS_SDK="$(MACOS_SDK)" scripts/release.sh

release-check: ## what a release must show, each point with yes, NO or not run
	@scripts/release_check.sh

.PHONY: test-newcomer
test-newcomer: ## README's two commands in a fresh Debian root, each timed; wants root and debootstrap (DIR keeps the root; SUITE, MIRROR)
	@scripts/newcomer.sh $(DIR)

clean: ## remove what was built
	@rm -rf build
