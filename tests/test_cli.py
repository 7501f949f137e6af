"""The command line: its overview, its help, its answers to mistakes, its completion in shells."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time

import pytest
import yaml
from conftest import HUNG_S, ROOT, Done

from deathmatch.cli import complete, main
from deathmatch.cli.arguments import SHELLS
from deathmatch.cli.commands import COMMANDS, GROUPS
from deathmatch.errors import UserError
from deathmatch.plan import files, new_server, release
from deathmatch.plan.paths import names

SNAKEFILES = [ROOT / "Snakefile", *sorted((ROOT / "workflow").glob("*.smk"))]
RULES = {rule for path in SNAKEFILES for rule in re.findall(r"rule (\w+):", path.read_text())}


def deathmatch(*words: str, program=ROOT / "bin" / "deathmatch", folder=ROOT) -> Done:
    done = subprocess.run(
        [program, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=HUNG_S,
    )  # fmt: skip
    return Done(done.returncode, done.stdout)


def check_line(line: str) -> None:
    """A line to be pasted: each of its words is known to what it calls."""
    shell, program, *words = shlex.split(line)
    assert shell == "./shell"
    if program == "deathmatch":
        if words[1:] != ["--help"]:
            main.parser(words[0], COMMANDS[words[0]]).parse_args(words[1:])
    elif program == "snakemake":
        for word in words:
            key, equals, value = word.partition("=")
            if not equals:
                assert word in RULES | {"-n", "--config"}, line
            elif value != "mine":
                assert value in files.names(complete.settings()[key]), line
    else:
        assert [program, *words] == ["jupyter", "lab"]


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_alone_it_lists_what_there_is_to_do(words):
    text = deathmatch(*words).succeeded().text
    places = [text.index(f"\n{title}\n") for title in GROUPS]
    assert places == sorted(places)
    assert re.findall(r"^  ([a-z-]+)  ", text, re.MULTILINE) == list(COMMANDS)
    assert max(map(len, text.splitlines())) <= 100
    shown = re.findall(r"^  (\./shell .*?)(?:  |$)", text, re.MULTILINE)
    assert len(shown) == len(main.MEASURE) + len(main.EXAMPLES)
    for line in shown:
        check_line(line)


def test_it_prints_the_version_and_the_commit():
    words = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    said = deathmatch("--version").succeeded().text
    version, commit = re.fullmatch(r"Deathmatch (\S+), commit (\w+)(?:-dirty)?\n", said).groups()
    assert version == release.version() and head.startswith(commit)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_describes_its_arguments_and_has_an_example_that_it_takes(name):
    parser = main.parser(name, COMMANDS[name])
    assert all(action.help for action in parser._actions), name
    text = parser.format_help()
    check_line(re.search(r"^example:\n  (.*)$", text, re.MULTILINE)[1])


def test_only_commands_py_declares_arguments():
    """A module that does the work is not imported to show its help."""
    found = [
        path for path in ROOT.glob("deathmatch/**/*.py")
        if re.search(r"^(def main\(\w+: argparse|main = )", path.read_text(), re.MULTILINE)
    ]  # fmt: skip
    known = {command.module for command in COMMANDS.values()}
    folder = ROOT / "deathmatch"
    modules = {".".join(path.relative_to(folder).with_suffix("").parts) for path in found}
    assert known <= modules
    assert [path for path in found if "def arguments(" in path.read_text()] == []


def test_an_example_that_is_wrong_would_be_found():
    for line in ("./shell deathmatch build", "./shell snakemake papers",
                 "./shell snakemake --config dataset=smoky"):  # fmt: skip
        with pytest.raises((AssertionError, UserError)):
            check_line(line)


def test_help_needs_no_library():
    """So it answers at once, and before anything is set up."""
    for words in (
        [], *([name, "--help"] for name in COMMANDS), ["list"],
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c",
             "import sys; sys.path.insert(0, '.'); from deathmatch.cli.main import run; run()",
             *words],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.parametrize(
    "words, said",
    [
        (["bild"], "there is no command 'bild'\n  did you mean build? ./shell deathmatch alone"),
        (["new_server", "x"], "'new_server'\n  did you mean new-server? "),
        (["chek"], "'chek'\n  did you mean check? "),
        (["wxyz"], "there is no command 'wxyz'\n  ./shell deathmatch alone lists the commands\n"),
        (["trial", "x", "--tesbed", "netns"],
         "trial: it takes no '--tesbed'\n  did you mean --testbed? ./shell deathmatch trial "),
        (["list", "serves"], "list: there is no 'serves'; known: "),
        (["list", "serves"], "\n  did you mean servers? "),
        (["build"], "build: the following arguments are required: server\n  ./shell deathmatch bu"),
        (["build", "yawz"], "there is no server 'yawz'\n  did you mean 'yaws'? "),
        (["completion", "tcsh"], "there is no 'tcsh'; known: bash, zsh, fish"),
    ],
)  # fmt: skip
def test_a_mistyped_word_is_answered_with_the_near_one(words, said):
    done = deathmatch(*words).failed()
    assert done.text.startswith("deathmatch: ") and said in done.text, done.text


def test_it_is_called_from_anywhere(tmp_path):
    (tmp_path / "link").symlink_to(ROOT / "bin" / "deathmatch")
    for program in (tmp_path / "link", ROOT / "bin" / "deathmatch"):
        done = deathmatch("list", "testbeds", program=program, folder=tmp_path).succeeded()
        assert done.text.startswith("both  ")


def test_list_has_every_name_and_title():
    for kind in files.MODELS:
        lines = deathmatch("list", f"{kind}s").succeeded().text.splitlines()
        assert [line.split()[0] for line in lines] == files.names(kind)
        assert lines[0].endswith(f"  {files.load(kind, files.names(kind)[0]).title}")
    assert (
        "01-backlog       Does the listen backlog limit the reply rate?"
        in deathmatch("list", "notebooks").text
    )


def completed(line: str) -> list[str]:
    """Return what bin/deathmatch offers for the line, by the protocol of argcomplete."""
    called = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
    called |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    words = ["sh", "-c", 'exec "$0" 8>&1 9>&2', ROOT / "bin" / "deathmatch"]
    done = subprocess.run(words, env=os.environ | called, capture_output=True, text=True)
    return done.stdout.split("\n") if done.stdout else []


@pytest.mark.parametrize(
    "line, words",
    [
        ("./shell ", list(complete.PROGRAMS)),
        ("./shell --", ["--help", "--nix", "--debian"]),
        ("./shell --debian deathm", ["deathmatch"]),
        ("../x/shell deathmatch ", list(COMMANDS)),
        ("deathmatch ", list(COMMANDS)),
        ("deathmatch build ws-n", ["ws-null"]),
        ("deathmatch build ws-null ", []),
        ("deathmatch trial --test", ["--testbed"]),
        ("deathmatch trial --testbed ", files.names("testbed")),
        ("deathmatch notebook notebooks/01", ["notebooks/01-backlog.md"]),
        ("deathmatch notebook --dataset smoke notebooks/01", ["notebooks/01-backlog.md"]),
        ("deathmatch notebook notebooks/01-backlog.md --compare quic", ["quick"]),
        ("deathmatch failures --retry smo", ["smoke"]),
        ("deathmatch completion ", list(SHELLS)),
        ("deathmatch new-server mine --kind web", ["websocket"]),
        ("./shell ruff READ", ["README.md"]),
        ("./shell snakemake ", list(complete.TARGETS)),
        ("./shell snakemake --config dataset=smo", ["dataset=smoke"]),
        ("./shell snakemake paper --config compare=smo", ["compare=smoke"]),
        ("./shell snakemake -n --config servers=yaws,ws-n", ["servers=yaws,ws-null"]),
        ("./shell snakemake --config experiments=over", ["experiments=overhead"]),
        ("./shell snakemake --config name=", []),
        ("./shell snakemake --config serv", ["servers="]),
    ],
)
def test_what_can_stand_at_the_cursor(line, words):
    assert completed(line) == words


def test_completion_knows_what_snakemake_knows():
    assert set(complete.TARGETS) <= RULES
    keys = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    assert complete.settings().keys() == keys.keys() | {"name", "kind"}
    assert all(names(kind) for key, kind in complete.settings().items() if key != "name")
    assert set(names("template")) == new_server.KINDS.keys()


def pressed(words: list[str], setup: str, keys: str, wanted: str) -> None:
    """Type into a shell on a terminal until it shows what is wanted."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(ROOT)
        os.execvpe(words[0], words, os.environ | {"TERM": "dumb", "PS1": "> "})
    shown = b""

    def until(text: str) -> None:
        nonlocal shown
        deadline = time.monotonic() + HUNG_S / 10
        while text.encode() not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536)

    try:
        os.write(terminal, f"{setup}; echo READY-$((1 + 1))\n".encode())
        until("READY-2")
        os.write(terminal, keys.encode())
        until(wanted)
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)


TYPED = {
    "./shell snakemake --config dataset=smo\t": "dataset=smoke",
    "./shell snakemake --config serv\tyaws,ws-n\t": "servers=yaws,ws-null",
    "bin/deathmatch list testb\t\n": "two network namespaces, the server throttled",
    "./shell ruff READ\t": "README.md",
}


def missing(shell: str) -> bool:
    """Nix's shell of the tests has no zsh and no fish; Debian's list names both."""
    return not shutil.which(shell) and os.environ.get("DEATHMATCH_TOOLCHAIN") != "debian"


@pytest.mark.parametrize("keys", TYPED)
def test_tab_in_bash(keys):
    setup = 'eval "$(bin/deathmatch completion bash)"'
    pressed(["bash", "--norc", "-i"], setup, keys, TYPED[keys])


@pytest.mark.skipif(missing("zsh"), reason="no zsh")
@pytest.mark.parametrize("keys", TYPED)
def test_tab_in_zsh(keys):
    setup = 'autoload -U compinit; compinit -u -D; eval "$(bin/deathmatch completion zsh)"'
    pressed(["zsh", "-f", "-i"], setup, keys, TYPED[keys])


@pytest.mark.skipif(missing("fish"), reason="no fish")
@pytest.mark.parametrize(
    "line, offered",
    [
        ("./shell snakemake --config dataset=smo", ["dataset=smoke"]),
        ("./shell deathmatch build ws-n", ["ws-null"]),
        ("bin/deathmatch compl", [f"completion\t{COMMANDS['completion'].about}"]),
    ],
)
def test_tab_in_fish(line, offered):
    script = f"bin/deathmatch completion fish | source; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == offered, done.stderr
