#!/bin/sh
# Install one Debian package as root without starting or enabling its service. Debian asks policy-rc.d before it
# starts anything; ours says no to this package's service while this process lives, and is removed on every way out.
# An existing policy-rc.d is left as it is: then a service that was newly started is stopped afterwards.
set -eu
package=$1
policy=${APT_INSTALL_POLICY:-/usr/sbin/policy-rc.d}
mark='# Written by the set-up of Flyball'
etc=${APT_INSTALL_ETC:-/etc}

remove_policy() {
  if [ -f "$policy" ] && grep -q "^$mark, process $$\$" "$policy"; then rm -f "$policy"; fi
}
running() { command -v service >/dev/null 2>&1 && service "$package" status >/dev/null 2>&1; }
enabled() {
  for link in "$etc"/systemd/system/*.wants/"$package".service "$etc"/rc[2345].d/S*"$package"; do
    [ -e "$link" ] || [ -L "$link" ] && return 0
  done
  return 1
}

trap remove_policy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# One that was left by a killed set-up allows everything by now, and would only be in the way.
if [ -f "$policy" ] && grep -q "^$mark, process" "$policy"; then
  pid=$(sed -n "s/^$mark, process //p" "$policy")
  kill -0 "$pid" 2>/dev/null || rm -f "$policy"
fi
# noclobber: never over another's file.
( set -C
  cat >"$policy" <<END
#!/bin/sh
$mark, process $$
kill -0 $$ 2>/dev/null || exit 0
case "\$1" in $package*) exit 101 ;; esac
exit 0
END
) 2>/dev/null && chmod 755 "$policy" || true

was_running=0; running && was_running=1
was_enabled=0; enabled && was_enabled=1

export DEBIAN_FRONTEND=noninteractive
apt_install() {
  apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 \
    -o Dpkg::Options::=--force-confold "$package"
}
# The lists on a fresh machine are empty or name versions that are gone; offline the first attempt may do.
apt_install || { apt-get update -q && apt_install; }

if [ "$was_running" = 0 ] && running; then service "$package" stop; fi
if [ "$was_enabled" = 0 ] && enabled; then
  if command -v systemctl >/dev/null 2>&1; then systemctl disable "$package.service" >/dev/null 2>&1 || true; fi
  if enabled && command -v update-rc.d >/dev/null 2>&1; then update-rc.d "$package" disable || true; fi
  if enabled; then
    echo "flyball set-up: the service $package is enabled and could not be disabled: run systemctl disable $package." >&2
    exit 1
  fi
fi
