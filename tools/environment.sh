# Sourced by demo.sh and test.sh: an environment of its own in .venv, with the kernels built in place.
#
#   prepare_environment GROUP     GROUP: "" for the program alone, "test" for what the tests need as well
#
# Only what is missing is done: a second call with unchanged sources takes a second. What cannot be had without the machine's
# administrator (compiler, Python and its headers) is named with the exact package line, and the script stops.

stop() {
    printf '%s\n' "$@" >&2
    exit 2
}

# The line that installs the given things on this distribution.
package_line() {
    like="unknown"
    [ -r /etc/os-release ] && like=$(. /etc/os-release && echo "${ID:-} ${ID_LIKE:-}")
    case " $like " in
        *" debian "* | *" ubuntu "*) echo "apt-get install gcc libc6-dev python3 python3-dev python3-venv" ;;
        *" fedora "* | *" rhel "* | *" centos "*) echo "dnf install gcc glibc-devel python3 python3-devel" ;;
        *suse*) echo "zypper install gcc glibc-devel python311 python311-devel" ;;
        *" arch "*) echo "pacman -S gcc python" ;;
        *" alpine "*) echo "apk add gcc musl-dev linux-headers python3 python3-dev" ;;
        *) echo "(your package manager) gcc, Python 3.11 or newer, and its headers" ;;
    esac
}

find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

check_machine() {
    [ "$(uname -s)" = Linux ] || stop "The kernels are built for Linux; this is $(uname -s)."
    python=$(find_python)
    [ -n "$python" ] || stop "Python 3.11 or newer is missing. Install it, then call this again:" "    $(package_line)"
    command -v "${CC:-gcc}" >/dev/null || stop "The C compiler ${CC:-gcc} is missing. Install it, then call this again:" "    $(package_line)"
    header=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
    [ -e "$header" ] || stop "The Python headers are missing ($header). Install them, then call this again:" "    $(package_line)"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || stop "Python's venv module is missing. Install it, then call this again:" "    $(package_line)"
}

prepare_environment() {
    group=$1
    check_machine
    [ -x .venv/bin/python ] && .venv/bin/python -c 'import pip' 2>/dev/null || "$python" -m venv --clear .venv
    wanted="$group $(cksum <pyproject.toml)"
    if ! grep -qsxF "$wanted" .venv/installed; then
        echo "Installing what the project needs into .venv ..."
        .venv/bin/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77' 'cython>=3.2' 'numpy>=1.26'
        build_kernels
        HIL_KERNELS_IN_PLACE=1 .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e ".${group:+[$group]}"
        echo "$wanted" >>.venv/installed
    else
        build_kernels
    fi
}

build_kernels() {
    echo "Building the kernels ..."
    mkdir -p build
    .venv/bin/python setup.py --quiet build_ext --inplace -j"$(nproc)" >build/log.txt 2>&1 || {
        tail -n 40 build/log.txt >&2
        stop "The kernels did not build; all of the compiler's output is in build/log.txt."
    }
}
