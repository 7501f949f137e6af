"""The command line: its overview, its help, its answers to mistakes."""

import re
import shlex
import subprocess
import sys

import pytest
from conftest import HUNG_S, ROOT, Done

from deathmatch.cli import main
from deathmatch.cli.commands import COMMANDS, GROUPS
from deathmatch.plan import files, paths

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
            else:
                assert value in files.names(key.removesuffix("s")), line
    else:
        assert [program, *words] == ["jupyter", "lab"]


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_without_words_it_lists_every_command(words):
    text = deathmatch(*words).succeeded().text
    places = [text.index(f"\n{title}\n") for title in GROUPS]
    assert places == sorted(places)
    assert re.findall(r"^  ([a-z-]+)  ", text, re.MULTILINE) == list(COMMANDS)
    assert max(map(len, text.splitlines())) <= 100
    shown = re.findall(r"^  (\./shell .*?)(?:  |$)", text, re.MULTILINE)
    assert len(shown) == len(main.MEASURE)
    for line in shown:
        check_line(line)


def test_it_prints_the_version_and_the_commit():
    words = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    said = deathmatch("--version").succeeded().text
    version, commit = re.fullmatch(r"Deathmatch (\S+), commit (\w+)(?:-dirty)?\n", said).groups()
    assert version == paths.version() and head.startswith(commit)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_describes_its_arguments_and_has_an_example_that_it_takes(name):
    parser = main.parser(name, COMMANDS[name])
    assert all(action.help for action in parser._actions), name
    text = parser.format_help()
    check_line(re.search(r"^example:\n  (.*)$", text, re.MULTILINE)[1])


def test_help_needs_no_library():
    """So it answers at once, and before anything is set up."""
    script = (
        "import contextlib, sys; sys.path.insert(0, '.')\n"
        "from deathmatch.cli.commands import COMMANDS\n"
        "from deathmatch.cli.main import main\n"
        "for words in ([], ['list'], *([name, '--help'] for name in COMMANDS)):\n"
        "    with contextlib.suppress(SystemExit): main(words)\n"
    )
    words = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nexample:\n") == len(COMMANDS)


@pytest.mark.parametrize(
    "words, said",
    [
        (["bild"], "there is no command 'bild'\n  did you mean 'build'"),
        (["wxyz"], "there is no command 'wxyz'\n  known: list, "),
        (["trial", "x", "--tesbed", "netns"],
         "trial: unrecognized arguments: --tesbed netns\n  ./shell deathmatch trial --help"),
        (["list", "serves"], "list: argument kind: invalid choice: 'serves' (choose from "),
        (["build"], "build: the following arguments are required: server\n  ./shell deathmatch bu"),
        (["build", "yawz"], "there is no server 'yawz'\n  did you mean 'yaws'"),
    ],
)  # fmt: skip
def test_a_mistyped_word_is_answered_with_the_near_one(words, said):
    done = deathmatch(*words).failed()
    assert done.text.startswith("deathmatch: ") and said in done.text, done.text


def test_it_is_called_from_anywhere(tmp_path):
    (tmp_path / "link").symlink_to(ROOT / "bin" / "deathmatch")
    for program in (tmp_path / "link", ROOT / "bin" / "deathmatch"):
        done = deathmatch("list", "testbeds", program=program, folder=tmp_path).succeeded()
        assert done.text.startswith(f"{files.names('testbed')[0]}  ")


def test_list_has_every_name_and_title(capsys):
    def listed(kind: str) -> list[str]:
        assert main.main(["list", kind]) == 0
        return capsys.readouterr().out.splitlines()

    for kind in files.MODELS:
        lines = listed(f"{kind}s")
        assert [line.split()[0] for line in lines] == files.names(kind)
        assert lines[0].endswith(f"  {files.load(kind, files.names(kind)[0]).title}")
    for line in listed("notebooks"):
        name, title = line.split(maxsplit=1)
        assert f"\n# {title} {{#sec-" in (ROOT / "notebooks" / f"{name}.md").read_text()
