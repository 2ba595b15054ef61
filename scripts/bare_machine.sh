#!/usr/bin/env bash
# Runs the README's commands on a machine that has only Debian's base system and the README's requirements.
#
#   sudo scripts/bare_machine.sh                         # make demo, make test
#   sudo scripts/bare_machine.sh 'make demo && ...'      # other commands
#
# For each length of the temporary folder's path, creates a chroot with a clone of this repository, and runs the commands
# twice in it. Needs debootstrap, a Rust toolchain (the chroot uses it too), and 10 GB in $BARE_FOLDER.
#
#   BARE_LENGTHS   minimum lengths of the temporary folder's path (5 60 110)
#   BARE_RUNS      how often the commands run for each length (2)
#   BARE_USER      user id that runs them; 0 is root (1000)
#   BARE_PACKAGES  more Debian packages to install, such as chromium (none)
#   BARE_SUITE     Debian release (bookworm)
#   BARE_MIRROR    Debian mirror (http://deb.debian.org/debian)
#   BARE_FOLDER    where the chroots are created and removed (/var/tmp)
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
commands=${1:-make demo && make test}
user=${BARE_USER:-1000}
toolchain=$(rustc --print sysroot)
folder=$(mktemp -d "${BARE_FOLDER:-/var/tmp}/holotrace-bare.XXXX")
trap 'rm -rf "$folder"' EXIT

needed=ca-certificates,gcc,git,libc6-dev,make,python3,python3-venv
echo "bare machine: Debian's base system, $needed${BARE_PACKAGES:+,${BARE_PACKAGES// /,}}"
debootstrap --variant=minbase --include="$needed${BARE_PACKAGES:+,${BARE_PACKAGES// /,}}" \
  "${BARE_SUITE:-bookworm}" "$folder/base" "${BARE_MIRROR:-http://deb.debian.org/debian}" >"$folder/debootstrap.log" ||
  { tail -5 "$folder/debootstrap.log"; exit 1; }

# The chroot gets this machine's network settings: host names, certificates and package registries.
cp -L /etc/resolv.conf /etc/hosts "$folder/base/etc/"
[ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$folder/base/etc/ssl/certs/"
[ ! -f /etc/pip.conf ] || cp -L /etc/pip.conf "$folder/base/etc/"
mapfile -t passed < <(env | grep -E '^(PIP|CARGO_(NET|HTTP|REGISTRIES|SOURCE)|SSL_CERT|REQUESTS|CURL|http_proxy|https_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY)' || true)

# machine ROOT TEMPORARY COMMAND: runs a command in the chroot. The mounts disappear when the command ends.
machine() {
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 toolchain=$2 user=$3 temporary=$4; shift 4
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mkdir -p "$root/opt/rust"
    mount --bind "$toolchain" "$root/opt/rust"
    exec chroot --userspec="$user:$user" "$root" /usr/bin/env -i HOME=/home/tester TMPDIR="$temporary" LANG=C.UTF-8 \
      PATH=/opt/rust/bin:/usr/local/bin:/usr/bin:/bin "${@:2}" bash -c "cd /home/tester/holotrace && $1"
  ' machine "$1" "$toolchain" "$user" "$2" "$3" "${passed[@]}"
}

failed=0
for length in ${BARE_LENGTHS:-5 60 110}; do
  root=$folder/root
  cp -a "$folder/base" "$root"
  temporary=/tmp/t
  while [ "${#temporary}" -lt "$length" ]; do temporary+=_; done
  mkdir -p "$root/home/tester" "$root$temporary"
  git clone -q --no-hardlinks "$repository" "$root/home/tester/holotrace"
  cp -L "${CARGO_HOME:-$HOME/.cargo}"/config* "$root/home/tester/" 2>/dev/null && mkdir "$root/home/tester/.cargo" &&
    mv "$root"/home/tester/config* "$root/home/tester/.cargo/"
  chown -R "$user:$user" "$root/home/tester" "$root$temporary"
  for run in $(seq "${BARE_RUNS:-2}"); do
    start=$SECONDS
    machine "$root" "$temporary" "$commands" >"$folder/log" 2>&1 && said=passed || { said=FAILED failed=1; }
    echo "temporary folder of ${#temporary} characters, run $run: $said in $((SECONDS - start)) s, $(grep -E '^[0-9]+ (passed|failed)' "$folder/log" | tail -1)"
    [ "$said" = passed ] || tail -40 "$folder/log"
    left=$(find "$root$temporary" -mindepth 1 -maxdepth 2 | head -5)
    [ -z "$left" ] || { echo "left in the temporary folder:"; echo "${left//$root/}"; }
  done
  rm -rf "$root"
done
exit "$failed"
