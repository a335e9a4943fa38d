#!/usr/bin/env bash
# Everything `make test` proves, in the order in which a mistake is cheapest to learn. It needs no Mac and no model
# beyond the one that is built in, and no network beyond Go's modules. The last lines are the results.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

scripts/install.sh test

# The real app is driven where it can be built and shown: TestApp skips with its reason elsewhere.
app() {
  [ "$(uname -s)" = Linux ] || return 0
  if ! scripts/install.sh app; then
    echo "the real app cannot be built or shown here: its test will skip"
    return 0
  fi
  make --no-print-directory gui OUT=build/test/pond
  export POND_TEST_APP="$PWD/build/test/pond"
}

step() { printf '\n== %s\n' "$1"; }

step "gofmt"
unformatted=$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'not formatted:\n%s\n' "$unformatted"
  exit 1
fi

for target in linux/amd64 linux/arm64; do
  step "go vet for $target"
  GOOS=${target%/*} GOARCH=${target#*/} go vet ./...
done

# Fyne's own widgets need cgo on a Mac, so app/ui is left to the next step there. -trimpath, because the test of the bundle links with it: what is compiled
# here is not compiled again there.
step "go vet for darwin/arm64"
packages=$(go list ./... | grep -v '/app/ui$')
# shellcheck disable=SC2086  # a list of words
GOOS=darwin GOARCH=arm64 go vet -trimpath $packages

# The tags type-check the window and its Mac files without Apple's compiler.
step "go vet of the window for darwin/arm64"
GOOS=darwin GOARCH=arm64 go vet -tags ci,mobile ./...

step "the app with its window"
app

step "go test"
go test -json -timeout 15m ./... | go run ./scripts/testreport
