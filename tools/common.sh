# shellcheck shell=bash
# Shared by the scripts in this folder: where things are, and how a build directory is configured.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." >/dev/null && pwd)
deps=$root/.deps
# Optimised kernels, for all build directories of this checkout (kernelgen.py).
export BRONTES_KERNEL_CACHE=${BRONTES_KERNEL_CACHE-$root/build/kernel-cache}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Prints the comment that opens the calling script, without the #! line.
usage() {
  sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
}

# configure DIR OPTION...: brings a build directory to these Meson options; does nothing when it has them.
configure() {
  local dir=$1 mode=() output
  shift
  local options=(--wrap-mode=nodownload "--pkg-config-path=$deps/pkgconfig" "$@")
  local compiler="CXX=${CXX:-}"
  local wanted="$compiler ${options[*]}" had=
  [[ -f $dir/build.ninja && -f $dir/configured-with ]] && had=$(<"$dir/configured-with")
  [[ $had == "$wanted" ]] && return

  # Meson keeps the compiler of a configured directory, and a configuration that failed half-way.
  if [[ $had == "$compiler "* ]]; then
    mode=(--reconfigure)
  elif [[ -d $dir/meson-private ]]; then
    mode=(--wipe)
  fi
  echo "configuring ${dir#"$root/"}"
  if ! output=$(meson setup "${mode[@]}" "${options[@]}" "$dir" "$root" 2>&1); then
    echo "$output"
    return 1
  fi
  printf '%s' "$wanted" >"$dir/configured-with"
}
