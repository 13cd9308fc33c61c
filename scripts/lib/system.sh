# Installs the programs of the system that the tests use, where they are missing.
# To be sourced. As root on Debian or Ubuntu it installs; otherwise it says what is missing, and
# the tests that need it are skipped. With CI=true a missing program is an error.

hybrid_has() {
  case $1 in
    postgresql) command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ;;
    iproute2) command -v ip >/dev/null || [ -x /usr/sbin/ip ] || [ -x /sbin/ip ] ;;
    systemd) command -v systemd-analyze >/dev/null ;;
    openssh-server) command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] ;;
    curl) command -v curl >/dev/null ;;
  esac
}

hybrid_missing() {
  local package
  for package in postgresql iproute2 openssh-server curl systemd; do
    hybrid_has "$package" || printf '%s ' "$package"
  done
}

hybrid_system() {
  local missing
  missing=$(hybrid_missing)
  if [ -z "$missing" ]; then return; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    printf 'Installing with apt-get: %s...\n' "$missing" >&2
    # shellcheck disable=SC2086  # a list of words
    { DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >/dev/null ||
      printf 'apt-get failed; what it said is above.\n' >&2
    missing=$(hybrid_missing)
    if [ -z "$missing" ]; then return; fi
  fi
  printf 'Missing on this machine: %s(tests that need them are skipped; install them as root).\n' "$missing" >&2
  if [ "${CI:-}" = true ]; then
    printf 'CI=true allows no skipped tests: stopping.\n' >&2
    return 1
  fi
}

hybrid_system
