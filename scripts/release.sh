#!/usr/bin/env bash
# From a tag to the files of a release, in build/release. On a Mac with an identity it signs and notarises; anywhere else it leaves the ad-hoc
# signature and says so, which is a rehearsal and no release.
#
#   POND_RELEASE_URL   where the files will be: https://…, without a slash at the end
#   POND_HOMEPAGE      the project's address
#   POND_UPDATE_KEYFILE  the private key of updates, made once with `go run ./packaging/pack keygen -out FILE`
#   MACOS_SDK          off a Mac: the SDK that the window is built with; without one the rehearsal's app has no window
#   POND_IDENTITY      on a Mac: "Developer ID Application: …"
#   POND_NOTARY        on a Mac: the keychain profile of `xcrun notarytool store-credentials`
#
# The steps that need a Mac (codesign with an identity, notarytool, stapler) were written from Apple's documentation and have not been run.
set -eu
cd "$(dirname "$0")/.."
: "${POND_RELEASE_URL:?the address that the files of the release will have}"
: "${POND_HOMEPAGE:?the address of the project}"
: "${POND_UPDATE_KEYFILE:?the private key of updates}"

pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
CGO_ENABLED=0 go build -o "$pack/pack" ./packaging/pack
version=$(sed -n 's/^Version = "\(.*\)"$/\1/p' FyneApp.toml)
at=$(scripts/stamp.sh time)
stamp=$(scripts/stamp.sh)
out=build/release
rm -rf "$out"
mkdir -p "$out"
case "$stamp" in
*,changed*)
  echo "the tree is not what was committed: commit first" >&2
  exit 2
  ;;
esac

# The feed stays at one address; the files of a release may each have their own.
POND_UPDATE_FEED="${POND_FEED_URL:-$POND_RELEASE_URL/appcast.xml}" POND_UPDATE_KEY=$("$pack/pack" public -key "$POND_UPDATE_KEYFILE") scripts/app.sh "${MACOS_SDK:-}"

if [ -n "${POND_IDENTITY:-}" ] && [ "$(uname -s)" = Darwin ]; then
  : "${POND_NOTARY:?the keychain profile for notarytool}"
  codesign --force --options runtime --timestamp --sign "$POND_IDENTITY" build/Pond.app
  ditto -c -k --keepParent build/Pond.app "$pack/notary.zip"
  xcrun notarytool submit "$pack/notary.zip" --keychain-profile "$POND_NOTARY" --wait
  xcrun stapler staple build/Pond.app
else
  echo "not run: signing with an identity and notarisation (a Mac and POND_IDENTITY); the app has an ad-hoc signature, and Gatekeeper asks before it opens it" >&2
fi
"$pack/pack" zip -app build/Pond.app -out "$out/Pond-$version.zip" -time "$at"
"$pack/pack" image -app build/Pond.app -out "$out/Pond-$version.dmg" -time "$at"
if [ -n "${POND_IDENTITY:-}" ] && [ "$(uname -s)" = Darwin ]; then
  codesign --timestamp --sign "$POND_IDENTITY" "$out/Pond-$version.dmg"
  xcrun notarytool submit "$out/Pond-$version.dmg" --keychain-profile "$POND_NOTARY" --wait
  xcrun stapler staple "$out/Pond-$version.dmg"
fi

for target in darwin-arm64 linux-amd64 linux-arm64; do
  CGO_ENABLED=0 GOOS=${target%-*} GOARCH=${target#*-} go build -trimpath -buildvcs=false -ldflags "-s -w $stamp" -o "$pack/$target/pond" .
  "$pack/pack" tar -binary "$pack/$target/pond" -out "$out/pond-$version-$target.tar.gz" -time "$at"
done
cp packaging/install.sh "$out/install.sh"
"$pack/pack" publish -dir "$out" -url "$POND_RELEASE_URL" -homepage "$POND_HOMEPAGE" -key "$POND_UPDATE_KEYFILE" -time "$at"
ls -l "$out"
scripts/release_check.sh "$out"
