# Sourced by scripts/quickstart and scripts/test: brings a Debian machine with Node to where the project builds and boots
# guests. Installs packages of Debian and of the lockfile, and changes nothing else. The sourcing script provides
# `give_up CODE MESSAGE...`, and stands in the project's root.

export HOME=${HOME:-/root}
export DEBIAN_FRONTEND=noninteractive
export NO_UPDATE_NOTIFIER=1 npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# node-pty, a development dependency, compiles at install.
base_packages=(ca-certificates curl g++ make python3 procps)
# Guests, their images and seeds. busybox-static is not among them: it would push Debian's busybox out; the guest's builder
# unpacks it beside.
guest_packages=(
  qemu-system-x86 qemu-utils ovmf xorriso mtools dosfstools fdisk e2fsprogs cpio zstd xz-utils binutils
  systemd-boot-efi dropbear-bin openssh-client
)
# The host network round guests, and tools that tests look with.
network_packages=(iproute2 nftables dnsmasq-base socat tcpdump genisoimage)

need_node() {
  local help='get Node 20.19 or newer from nodejs.org or your distribution (Debian 12 itself has only 18), and put it on PATH'
  command -v node >/dev/null || give_up 78 'node is not on PATH' "$help"
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    give_up 78 "node $(node --version) is too old" "$help"
  command -v npm >/dev/null || give_up 78 'npm is not on PATH: it comes with Node' "$help"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# PACKAGE...: installs those that are missing. Answers 2 where this is no Debian.
install_packages() {
  local missing=() package
  command -v dpkg-query >/dev/null || return 2
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  echo "installing: ${missing[*]}"
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null ||
    give_up 78 "these packages are missing and need root to install: ${missing[*]}"
  as_root apt-get update -q -o Dpkg::Use-Pty=0 || echo 'apt-get update failed: going on with the lists that are here'
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" ||
    give_up 78 "could not install: ${missing[*]}"
}

install_modules() {
  local stamp=node_modules/.eitri-installed now prefix
  now="$(node --version) $(cksum <package-lock.json)"
  [ "$(cat "$stamp" 2>/dev/null)" = "$now" ] && return 0
  # Somebody's own `npm install` is as good: `npm ci` would empty a node_modules that others may be using.
  if ! node scripts/check-lockfile.mjs --installed; then
    # node-gyp would download Node's headers; most installations of Node bring them along.
    prefix=$(node -p 'require("node:path").resolve(process.execPath, "../..")')
    [ -e "$prefix/include/node/node.h" ] && export npm_config_nodedir=${npm_config_nodedir:-$prefix}
    npm ci --prefer-offline || give_up 1 'npm ci failed'
  fi
  printf '%s\n' "$now" >"$stamp"
}

# Builds the small guest, unless it is there, and tells where: EITRI_TEST_GUEST.
build_guest() {
  export EITRI_TEST_GUEST=${EITRI_TEST_GUEST:-$PWD/.cache/guest}
  scripts/guest/build-tiny "$EITRI_TEST_GUEST" || give_up 1 'the guest image could not be built'
}
