# Sourced by demo.sh and test.sh: an environment of its own in .venv, with the kernels built in place.
#
#   prepare_environment GROUP [first]    GROUP: "" for the program alone, or a group of pyproject.toml (test, console)
#                                        first: only what the first docking needs; the call without it does the rest
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
    group=$1 wave=${2:-}
    check_machine
    [ -x .venv/bin/python ] && .venv/bin/python -c 'import pip' 2>/dev/null || "$python" -m venv --clear .venv
    fetch_packages
    if [ "$wave" = first ]; then
        build_kernels first "the kernels of the first docking"
    else
        build_kernels "" "the kernels"
    fi
    wait_for_packages
    install_project "$group"
    [ "$wave" = first ] || .venv/bin/python tools/generate.py --build || stop "What is generated could not be made: see above."
}

# What a build needs at once; what a run and the group need beside the build, which it does not wait for.
fetch_packages() {
    mkdir -p build
    packages=
    if installed "$group"; then return; fi
    echo "Installing what the project needs into .venv ..."
    pip_install 'setuptools>=77' 'cython>=3.2' 'numpy>=1.26'
    requirements "$group" >build/requirements.txt
    pip_install -r build/requirements.txt &
    packages=$!
}

# The requirements of the project and of a group, one a line.
requirements() {
    .venv/bin/python -c 'import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"].get(sys.argv[1], ()), sep="\n")' "$1"
}

wait_for_packages() {
    [ -z "$packages" ] || wait "$packages" || stop "What the project needs could not be installed: see above."
    packages=
}

pip_install() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

# Whether the project is installed in .venv as pyproject.toml now is, with the group (`installed GROUP`).
installed() {
    grep -qsxF "$1 $(cksum <pyproject.toml)" .venv/installed
}

install_project() {
    installed "$1" && return
    HIL_KERNELS=built pip_install --no-build-isolation -e ".${1:+[$1]}"
    echo "$1 $(cksum <pyproject.toml)" >>.venv/installed
}

# build_kernels WHICH WORDS     WHICH: first (what the first docking needs), or nothing: all that are not built yet
build_kernels() {
    echo "Building $2 ..."
    HIL_KERNELS=$1 HIL_PROGRESS_FD=3 .venv/bin/python setup.py --quiet build_ext --inplace -j"$(nproc)" 3>&2 >build/log.txt 2>&1 || {
        tail -n 40 build/log.txt >&2
        stop "The kernels did not build; all of the compiler's output is in build/log.txt."
    }
    [ -n "$1" ] || touch build/kernels
}
