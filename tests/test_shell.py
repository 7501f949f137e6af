"""./shell: one command for every machine, and no service touched."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import AS_ROOT, HUNG_S, ROOT, Done, copy_tree

# Whether this is a Debian with all packages; elsewhere ./shell reports what is missing.
DEBIAN = os.environ.get("DEATHMATCH_TOOLCHAIN") == "debian"
PRIVATE = ["unshare", *([] if AS_ROOT else ["--user", "--map-root-user"]), "--mount", "--"]


on_debian = pytest.mark.skipif(not DEBIAN, reason="inside Nix, Debian 12 is not at hand")


def shell(*words: str, before: list[str] | None = None, folder=ROOT, **variables: str) -> Done:
    done = subprocess.run(
        [*(before or []), "./shell", *words], cwd=folder, env=os.environ | variables,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=HUNG_S,
    )  # fmt: skip
    return Done(done.returncode, done.stdout)


def another_system(tmp_path, text: str) -> list[str]:
    """Return words that run a command where /etc/os-release has this text and there is no nix."""
    release = tmp_path / "os-release"
    release.write_text(text)
    nix = shutil.which("nix")
    hidden = f"mount --bind /bin/false '{os.path.realpath(nix)}'; " if nix else ""
    script = f'{hidden}mount --bind \'{release}\' "$(readlink -f /etc/os-release)"; exec "$@"'
    return [*PRIVATE, "sh", "-ec", script, "sh"]


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help(words):
    done = shell(*words).succeeded()
    assert done.text.startswith("./shell [--nix | --debian] CMD...: run CMD")
    shown = re.findall(r"^  \./shell (\w+)", done.text, re.MULTILINE)
    assert dict.fromkeys(shown).keys() == {"snakemake", "deathmatch", "jupyter", "pytest", "bash"}
    assert "#" not in done.text and "set -eu" not in done.text


def test_unknown_option_and_no_command():
    assert shell("--nyx", "true").failed().text == (
        "shell: unknown option --nyx; known: --nix, --debian, --help\n"
    )
    for choice in ("--debian", "--nix"):
        assert shell(choice).failed().text == (
            "shell: no command given, for example: ./shell snakemake\n"
        )


@pytest.mark.parametrize(
    "release",
    [
        'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n',
        'ID=debian\nVERSION_ID="11"\nVERSION_CODENAME=bullseye\n',
        "",
    ],
)
def test_another_system_gets_one_sentence(tmp_path, release):
    done = shell("true", before=another_system(tmp_path, release)).failed()
    assert done.text == (
        "shell: ./shell needs Debian 12, Debian 13 or Nix with flakes; on this system use the "
        "container:\n  podman build -t deathmatch . (Containerfile says how to run it); "
        "README.md describes all three\n"
    )


def test_nix_without_flakes(tmp_path):
    done = shell("--nix", "true", before=another_system(tmp_path, "ID=fedora\n")).failed()
    assert done.text.startswith("shell: --nix needs Nix with flakes: experimental-features = ")


def with_nix(folder: Path, release: str) -> str:
    """Return a PATH with a `nix` of this release that only prints its arguments."""
    (folder / "nix").write_text(
        '#!/bin/sh\ncase $* in "config show") echo "experimental-features = flakes nix-command";;\n'
        f'--version) echo "nix {release}";;\n*) echo "$@";; esac\n'
    )
    (folder / "nix").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("release", ["(Nix) 2.18.0", "(Lix, like Nix) 2.91.1"])
def test_nix_with_flakes_is_entered(tmp_path, release):
    """./shell calls Nix in the right way; Nix itself is not tested."""
    path = with_nix(tmp_path, release)
    for words in (["true", "a b"], ["--nix", "true", "a b"]):
        done = shell(*words, PATH=path).succeeded()
        assert done.text == f"develop {ROOT} --command true a b\n"
    for words, output in (("pytest -x", "test"), ("ruff check", "test"), ("jupyter lab", "lab")):
        done = shell(*words.split(), PATH=path).succeeded()
        assert done.text == f"develop {ROOT}#{output} --command {words}\n"


def test_a_nix_too_old_for_the_flake_is_not_entered(tmp_path):
    path = with_nix(tmp_path, "(Nix) 2.8.0")
    lacks = "needs Nix 2.18 or later, and this is 2.8.0\n"
    assert shell("--nix", "true", PATH=path).failed().text == f"shell: --nix {lacks}"
    elsewhere = another_system(tmp_path, "ID=fedora\n")
    said = shell("true", before=elsewhere, PATH=path).failed().text
    assert said.startswith(
        f"set-up: Nix is not used: the flake {lacks}shell: ./shell needs Debian "
    )


@pytest.mark.parametrize("name", ["a b", "a'b", "a;b", "a[b", "a{b", "a\\b"])
def test_a_folder_with_a_name_that_a_shell_would_split(tmp_path, name):
    """Commands of servers' folders hold the clone's path as it is."""
    (tmp_path / name).mkdir()
    shutil.copy(ROOT / "shell", tmp_path / name)
    done = shell("true", folder=tmp_path / name).failed()
    assert done.text.startswith(f"shell: the folder {tmp_path / name} has a space, or another ")
    assert os.listdir(tmp_path / name) == ["shell"]


@on_debian
def test_it_is_called_from_elsewhere_by_a_link_and_with_cdpath(tmp_path):
    (tmp_path / "link").symlink_to(ROOT / "shell")
    for words in (["./link"], ["sh", "link"]):
        done = subprocess.run(
            [*words, "--debian", "sh", "-c", "pwd; command -v deathmatch"],
            cwd=tmp_path, env=os.environ | {"CDPATH": str(ROOT.parent)},
            capture_output=True, text=True, timeout=HUNG_S,
        )  # fmt: skip
        assert done.stdout == f"{ROOT}\n{ROOT}/bin/deathmatch\n", done.stderr
    assert os.listdir(tmp_path) == ["link"]


@on_debian
def test_no_network_no_terminal_and_no_rights_for_others_are_needed_once_it_is_set_up():
    """The function `shell` gives it no terminal."""
    alone = ["unshare", *([] if AS_ROOT else ["--user", "--map-root-user"]), "--net", "--"]
    before = [*alone, "sh", "-c", 'umask 077; exec "$@"', "sh"]
    done = shell("--debian", "deathmatch", "list", "testbeds", before=before).succeeded()
    assert "netns  " in done.text


@on_debian
def test_a_user_without_name_home_and_locale():
    before = ["unshare", "--user", "--map-user=54321", "--"]
    script = (
        "python -c 'import getpass, sys; "
        'print(sys.flags.utf8_mode, ascii("é"), getpass.getuser())\'; '
        "snakemake -n --config dataset=smoke servers=null"
    )
    done = shell(
        "--debian", "sh", "-ec", script, before=before,
        HOME="/nonexistent", LC_ALL="de_DE.ISO-8859-1", USER="", LOGNAME="",
    ).succeeded()  # fmt: skip
    assert done.text.startswith("1 '\\xe9' user\n")


def of_nobody(place: Path) -> Path:
    """Return a copy of the project in a folder that belongs to another user."""
    for path in (place, *place.parents):
        if path.owner() == "root" and path != path.parent and not path.stat().st_mode & 0o005:
            path.chmod(0o755)
    folder = copy_tree(place / "tree")
    os.chown(folder, 65534, 65534)
    return folder


@on_debian
@pytest.mark.skipif(not AS_ROOT, reason="takes another user")
def test_a_build_folder_of_another_user(tmp_path):
    """A first run by sudo leaves files that are root's."""
    folder = of_nobody(tmp_path)
    (folder / "build").mkdir()
    nobody = ["setpriv", "--reuid=nobody", "--clear-groups", "--"]
    done = shell("--debian", "true", before=nobody, folder=folder).failed()
    assert done.text.startswith(
        f"shell: {folder}/build belongs to root, and nobody cannot write it:\n  run as root, or"
    )


@on_debian
def test_a_read_only_checkout(tmp_path):
    folder = copy_tree(tmp_path / "tree")
    script = 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; cd "$0"; exec "$@"'
    done = shell("--debian", "true", before=[*PRIVATE, "sh", "-ec", script, str(folder)],
                 folder=folder).failed()  # fmt: skip
    assert done.text == (
        f"shell: {folder} is read-only: clone the project into a folder of your own\n"
    )


@on_debian
@pytest.mark.skipif(not AS_ROOT, reason="takes another user")
def test_a_package_that_only_root_can_install(tmp_path):
    """Without root and sudo the error names the command for root."""
    folder = of_nobody(tmp_path)
    (folder / "toolchains/debian/base.txt").write_text("no-such-package\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("basename", "cat", "dirname", "dpkg-query", "env", "flock", "id", "mkdir",
                 "readlink", "sed", "sh", "stat"):  # fmt: skip
        (programs / name).symlink_to(shutil.which(name))
    nobody = [shutil.which("setpriv"), "--reuid=nobody", "--clear-groups", "--"]
    done = shell("--debian", "true", before=nobody, folder=folder, PATH=str(programs)).failed()
    assert done.text == (
        "shell: Debian packages are missing, and only root can install them;\n"
        "  once, as root, run: apt-get install --no-install-recommends no-such-package \n"
    )


@on_debian
@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_descriptors_that_the_caller_closed_stay_free(closed):
    """Otherwise output would be written into the next file that is opened."""
    opened = "import os; [os.fstat(number) for number in range(3)]"
    script = f"./shell --debian python -c '{opened}' {closed}"
    assert subprocess.run(["sh", "-c", script], cwd=ROOT).returncode == 0


@on_debian
def test_command_gets_its_words_its_status_and_the_tools(tmp_path):
    """Also where a Nix is too old."""
    done = shell("snakmake", PATH=with_nix(tmp_path, "(Nix) 2.8.0")).failed()
    assert done.status == 127
    assert done.text == (
        "set-up: Nix is not used: the flake needs Nix 2.18 or later, and this is 2.8.0\n"
        "shell: there is no command snakmake; ./shell --help shows examples\n"
    )
    script = 'echo "$1|$2|$DEATHMATCH_TOOLCHAIN"; which httperf snakemake; exit 7'
    done = shell("--debian", "sh", "-c", script, "sh", "a  b", "*", PATH="/usr/bin:/bin:/usr/sbin")
    assert done.status == 7
    assert done.text.splitlines() == [
        "a  b|*|debian",
        f"{ROOT}/build/httperf/bin/httperf",
        f"{ROOT}/build/venv/bin/snakemake",
    ]


@on_debian
def test_a_step_that_fails_shows_its_log_and_ends(tmp_path):
    """A fresh copy with an invalid list of Python packages."""
    folder = copy_tree(tmp_path / "tree")
    (folder / "toolchains/python/run.txt").write_text("no such line\n")
    done = shell("--debian", "echo", "reached", folder=folder).failed()
    lines = done.text.splitlines()
    assert lines[0].startswith("set-up: the first time this takes one to five minutes")
    assert lines[1] == "set-up: Python packages: run"
    assert "Invalid requirement" in done.text and "reached" not in done.text
    assert lines[-1] == (
        "shell: set-up failed; the whole log is build/setup.log; fix the cause and run again"
    )
    # The failed step is tried again.
    again = shell("--debian", "true", folder=folder).failed()
    assert "set-up: Python packages: run\n" in again.text


def block(group: str, name: str) -> str:
    """Return what the group's locked list says of a package: its release and its hashes."""
    text = (ROOT / "toolchains" / "python" / f"{group}.txt").read_text()
    return re.search(rf"^{name}==.*(?:\n .*)*\n", text, re.MULTILINE)[0]


@on_debian
def test_each_command_gets_its_groups_of_python_packages(tmp_path):
    """With lists of one small package each."""
    folder = copy_tree(tmp_path / "tree")
    for client in ("httperf", "roundtrip"):
        shutil.copytree(ROOT / "build" / client, folder / "build" / client)
    small = {"run": "throttler", "lab": "json5", "test": "iniconfig", "lint": "pathspec"}
    lists = {group: folder / f"toolchains/python/{group}.txt" for group in small}
    for group, name in small.items():
        lists[group].write_text(block(group, name))

    def installed(*words: str) -> set[str]:
        # The command itself fails, as these lists lack its program; only the set-up counts.
        shell("--debian", *words, folder=folder)
        (packages,) = (folder / "build/venv/lib").glob("python*/site-packages")
        return {group for group, name in small.items() if (packages / name).exists()}

    assert installed("true") == {"run"}
    assert installed("jupyter", "lab", "--version") == {"run", "lab"}
    assert installed("ruff", "check") == {"run", "lab", "lint"}
    assert shell("--debian", "true", folder=folder).succeeded().text == ""
    # A changed list makes a new environment.
    lists["lab"].write_text(lists["lab"].read_text() + "\n")
    assert installed("snakefmt") == {"lint"}


# Prints the services that would start by themselves and those that run, after the packages are
# installed in the usual way or by our script. uptimed brings a daemon with a unit and a script of
# SysV, logrotate a timer only.
INSTALL = r"""
cd "$1"; shift
mount -t tmpfs tmpfs . && mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
mount -t proc proc root/proc && mount --bind /dev root/dev
cp "$1" root/install-without-daemons
cat >root/try <<'END'
rm -f /usr/sbin/policy-rc.d /sbin/runlevel
printf '#!/bin/sh\necho N 2\n' >/sbin/runlevel; chmod 755 /sbin/runlevel
find /etc/systemd/system /etc/rc[2-5].d -type l -name '[!K]*' | sort >/before
"$@" >/log 2>&1 || { cat /log; exit 1; }
find /etc/systemd/system /etc/rc[2-5].d -type l -name '[!K]*' | sort | comm -13 /before -
cat /proc/[0-9]*/comm | grep -x uptimed
dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' uptimed logrotate
ls /usr/sbin/policy-rc.d 2>/dev/null || true
END
apt() { chroot root apt-get -qq -o APT::Sandbox::User=root "$@" >root/log 2>&1; }
get() { apt install --yes --download-only uptimed logrotate; }
get || { apt update && get; } || { cat root/log; exit 1; }
shift
exec unshare --net chroot root sh /try "$@" uptimed logrotate
"""


def install(tmp_path, *words: str) -> set[str]:
    """Install in a private copy-on-write view of this system; return what is new or running."""
    if not shutil.which("apt-get"):
        pytest.fail("needs Debian: run it there")
    sudo = [] if AS_ROOT else ["sudo", "-n"]
    private = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    done = subprocess.run(
        [*sudo, *private, "sh", "-ec", INSTALL, "sh", tmp_path, ROOT / "toolchains/debian/install",
         *words],
        capture_output=True, text=True, timeout=HUNG_S, env=os.environ | {"LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return set(done.stdout.splitlines())


INSTALLED = {"uptimed installed", "logrotate installed"}


def test_daemons_that_packages_bring_stay_off(tmp_path):
    assert install(tmp_path, "/install-without-daemons") == INSTALLED
