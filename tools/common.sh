# Sourced by tools/quickstart, tools/test and tools/lint: installs what is missing, configures and builds.
# Package names are the same on Debian 12 and on Ubuntu 22.04 and 24.04.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"

build_packages=(g++ cmake ninja-build libboost-graph-dev libfmt-dev nlohmann-json3-dev libcli11-dev
  libtbb-dev zlib1g-dev libeigen3-dev libceres-dev)
test_packages=(catch2 libbenchmark-dev python3 python3-jsonschema)

say() { printf '%s\n' "$*" >&2; }

# install PACKAGE...: says what is missing and installs it, as root or through sudo.
install() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "These packages are missing and need root to install: ${missing[*]}"; exit 1; }
    sudo=(sudo)
  fi
  say "Installing from the distribution's packages: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# build PRESET TARGET...: configures once, then builds; quiet unless it fails.
build() {
  local preset=$1 log
  shift
  log=$(mktemp)
  say "Building ($preset)..."
  if ! { [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"; } >"$log" 2>&1 ||
     ! cmake --build "build/$preset" --target "${@:-all}" >>"$log" 2>&1; then
    tail -n 60 "$log" >&2
    rm -f "$log"
    exit 1
  fi
  rm -f "$log"
}
