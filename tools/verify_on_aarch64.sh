#!/bin/sh
# Verifies a log on aarch64 under user-mode emulation: the kernels cross-compiled with the flags of every build, Debian's Python and the wheels
# of that processor. Every field of every tick has to be equal by bytes to what the machine that wrote the log computed.
#
# Usage: tools/verify_on_aarch64.sh LOG [FOLDER]     Only what FOLDER (default build/aarch64) lacks is fetched and built: some ten minutes at
# the first time. Builds the modules of tools/first_docking.txt: enough for a log of virtual_docking_ship.
# Needs Debian's packages qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross, and a network at the first time. The interpreter of .venv must
# have the version of Debian's (3.11 in bookworm): its headers are used, which are those of any 64-bit Linux.
set -eu
cd "$(dirname "$0")/.."
log=$(realpath "$1")
folder=$(realpath -m "${2:-build/aarch64}")
python=$PWD/.venv/bin/python
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for program in qemu-aarch64 aarch64-linux-gnu-gcc apt-get; do
    command -v $program >/dev/null || { echo "$program is missing: apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"; exit 2; }
done
mkdir -p "$folder"

if [ ! -x "$folder/debian/usr/bin/python$version" ]; then
    echo "== Python for aarch64"
    mkdir -p "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial" "$folder/deb"
    touch "$folder/apt/status"
    own="-o Dir::State=$folder/apt/state -o Dir::State::status=$folder/apt/status -o Dir::Cache=$folder/apt/cache"
    own="$own -o APT::Architecture=arm64 -o APT::Architectures=arm64"
    (
        cd "$folder/deb"
        # shellcheck disable=SC2086
        apt-get $own -qq update
        # shellcheck disable=SC2086
        apt-get $own -qq download "python$version-minimal" "libpython$version-minimal" "libpython$version-stdlib" libc6 libgcc-s1 libstdc++6 \
            zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libcrypt1 libdb5.3
    )
    for package in "$folder"/deb/*.deb; do dpkg-deb -x "$package" "$folder/debian"; done
fi

if [ ! -d "$folder/site" ]; then
    echo "== wheels for aarch64"
    "$python" -m pip download -q --no-deps -d "$folder/wheels" --python-version "$version" --only-binary=:all: \
        --platform manylinux2014_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux_2_28_aarch64 \
        "numpy==$("$python" -c 'import numpy; print(numpy.__version__)')" scipy zstandard lz4 msgpack pyzmq mcap rich
    for wheel in "$folder"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$folder/site"; done
fi

echo "== kernels for aarch64"
mkdir -p "$folder/src/tools"
cp setup.py pyproject.toml README.md LICENSE "$folder/src"
cp tools/first_docking.txt tools/generate_channels.py "$folder/src/tools"
tar cf - --exclude='*.so' --exclude=__pycache__ hil_server rt_kernels drivers stand_configs | tar xf - -C "$folder/src"
(
    cd "$folder/src"
    CC=aarch64-linux-gnu-gcc LDSHARED="aarch64-linux-gnu-gcc -shared" HIL_KERNELS=first "$python" setup.py --quiet build_ext --inplace -j1
    # the name says for which machine the build ran
    find . -name '*.cpython-*-x86_64-linux-gnu.so' | while read -r file; do
        cp "$file" "$(echo "$file" | sed 's/-x86_64-linux-gnu/-aarch64-linux-gnu/')"
    done
)

echo "== replay"
cd "$folder/src"
PYTHONPATH=$folder/site PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1 \
    qemu-aarch64 -L "$folder/debian" "$folder/debian/usr/bin/python$version" -m hil_server replay "$log" --verify
