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
# The host network round guests.
bridge_packages=(iproute2 nftables dnsmasq-base procps)
# The same, and tools that tests look with.
network_packages=("${bridge_packages[@]}" socat tcpdump openssl genisoimage udhcpc busybox)

# The same elsewhere, as what to look for: NAME|COMMAND or /FILE..., of which one has to be there.
base_things=('curl|curl' 'a C++ compiler|c++ g++ clang++' 'make|make' 'python3|python3' 'ps (procps)|ps')
case $(uname -m) in
  aarch64 | arm64)
    qemu_command=qemu-system-aarch64 efi_stub=/usr/lib/systemd/boot/efi/linuxaa64.efi.stub
    firmware_files='/usr/share/AAVMF/AAVMF_CODE.fd /usr/share/edk2/aarch64/QEMU_EFI-pflash.raw /usr/share/edk2/aarch64/QEMU_CODE.fd
      /usr/share/qemu/aavmf-aarch64-code.bin /usr/share/qemu/edk2-aarch64-code.fd /usr/local/share/qemu/edk2-aarch64-code.fd'
    ;;
  *)
    qemu_command=qemu-system-x86_64 efi_stub=/usr/lib/systemd/boot/efi/linuxx64.efi.stub
    firmware_files='/usr/share/OVMF/OVMF_CODE_4M.fd /usr/share/edk2/x64/OVMF_CODE.4m.fd /usr/share/qemu/ovmf-x86_64-4m-code.bin
      /usr/share/edk2/ovmf/OVMF_CODE.fd /usr/share/edk2-ovmf/x64/OVMF_CODE.fd /usr/share/OVMF/OVMF_CODE.fd
      /usr/share/qemu/edk2-x86_64-code.fd /usr/local/share/qemu/edk2-x86_64-code.fd'
    ;;
esac
guest_things=(
  "QEMU ($qemu_command)|$qemu_command" 'qemu-img|qemu-img' "UEFI firmware for QEMU (OVMF, edk2)|$firmware_files" 'xorriso|xorriso'
  'ssh and ssh-keygen (OpenSSH)|ssh-keygen'
)
# To build the tiny guest, where none is there.
guest_build_things=(
  'dpkg and apt (the guest is made of Debian packages)|dpkg' 'apt-get|apt-get' 'mtools|mcopy' 'mkfs.vfat (dosfstools)|mkfs.vfat'
  'sfdisk|sfdisk' 'mke2fs and resize2fs (e2fsprogs)|mke2fs' 'cpio|cpio' 'zstd|zstd' 'xz|xz' 'objcopy (binutils)|objcopy'
  "systemd's EFI stub ($efi_stub)|$efi_stub" 'dropbear|dropbear' 'dropbearkey|dropbearkey' 'dropbearconvert|dropbearconvert'
)
bridge_things=('ip (iproute2)|ip' 'nft (nftables)|nft' 'dnsmasq|dnsmasq' 'sysctl (procps)|sysctl')
network_things=("${bridge_things[@]}" 'socat|socat' 'tcpdump|tcpdump' 'openssl|openssl')

need_node() {
  local help='get Node 20.19 or newer from nodejs.org or your distribution (Debian 12 itself has only 18), and put it on PATH'
  command -v node >/dev/null || give_up 78 'node is not on PATH' "$help"
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    give_up 78 "node $(node --version) is too old" "$help"
  command -v npm >/dev/null || give_up 78 'npm is not on PATH: it comes with Node' "$help"
}

# SCRIPT ARGUMENT...: in a plain chroot, whose root is no mount point, neither "ip netns exec" nor "unshare --mount" works, as
# both change how mounts spread from the root on. There the script starts anew in a mount namespace in which its root is
# one: bound, for want of a place from which nothing spreads to the host, into a private copy of /proc. Elsewhere, and where
# it is no root, nothing happens.
with_root_mounted() {
  [ "$(uname -s)" = Linux ] && [ "$(id -u)" -eq 0 ] && [ -z "${EITRI_ROOT_MOUNTED:-}" ] || return 0
  [ -r /proc/self/mountinfo ] && [ -d /proc/fs ] || return 0
  ! awk '$5 == "/" { found = 1 } END { exit !found }' /proc/self/mountinfo || return 0
  export EITRI_ROOT_MOUNTED=yes
  exec unshare --mount --propagation unchanged sh -ec '
    mount --make-private /proc
    mount --rbind / /proc/fs
    mount --make-rprivate /proc/fs
    exec chroot /proc/fs sh -c "cd \"\$0\" && exec \"\$@\"" "$@"
  ' sh "$PWD" "$@"
}

# Gives up where tests can't have network namespaces of their own.
need_namespaces() {
  local name=eitest-probe-$$ why
  why=$({ ip netns add "$name" && ip netns exec "$name" true; } 2>&1)
  local code=$?
  ip netns delete "$name" 2>/dev/null
  [ "$code" -eq 0 ] || give_up 78 "network namespaces can't be made or used here: $why" \
    'run as root; a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN'
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# THING...: gives up with the names of those that are missing.
require_things() {
  local thing one missing=()
  for thing; do
    # Not quoted: a list of words.
    for one in ${thing#*|}; do
      case $one in
        /*) [ -e "$one" ] && continue 2 ;;
        *) command -v "$one" >/dev/null && continue 2 ;;
      esac
    done
    missing+=("${thing%%|*}")
  done
  [ "${#missing[@]}" -eq 0 ] ||
    give_up 78 'this is no Debian, so nothing is installed here by itself; missing, under whatever name it has here:' "${missing[@]/#/  }"
}

guest_is_there() {
  local folder=${EITRI_TEST_GUEST:-$PWD/.cache/guest}
  [ -e "$folder/tiny.raw" ] && [ -e "$folder/tiny.qcow2" ]
}

# GROUP... (base, guest, bridge, network): installs what is missing; where this is no Debian, gives up when something is.
need() {
  local group packages=() things=()
  for group; do
    case $group in
      base) packages+=("${base_packages[@]}") things+=("${base_things[@]}") ;;
      bridge) packages+=("${bridge_packages[@]}") things+=("${bridge_things[@]}") ;;
      network) packages+=("${network_packages[@]}") things+=("${network_things[@]}") ;;
      guest)
        packages+=("${guest_packages[@]}") things+=("${guest_things[@]}")
        guest_is_there || things+=("${guest_build_things[@]}")
        ;;
    esac
  done
  if command -v dpkg-query >/dev/null; then install_packages "${packages[@]}"; else require_things "${things[@]}"; fi
}

# PACKAGE...: installs those that are missing.
install_packages() {
  local missing=() package
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

# Builds the small guest, unless it is there, and tells where: EITRI_TEST_GUEST. One that was built elsewhere is taken as it
# is: only a Debian can tell whether it is up to date.
build_guest() {
  export EITRI_TEST_GUEST=${EITRI_TEST_GUEST:-$PWD/.cache/guest}
  command -v dpkg >/dev/null || ! guest_is_there || return 0
  scripts/guest/build-tiny "$EITRI_TEST_GUEST" || give_up 1 'the guest image could not be built'
}
