"""Pages of the manual as programs: their Python and their sessions with the command, in the order of the page."""

import doctest
import re
import shlex
from pathlib import Path

from commands import ucbf

ROOT = Path(__file__).parents[1]
FENCED = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OTHERS = ("make ", "pip ", "python ")  # commands that are not ours, or that other tests run


def sessions(text):
    """The commands of a console block, each with what it is said to print."""
    for part in re.split(r"^\$ ", text.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command.split("   #")[0].strip(), printed


def run_page(path, folder):
    """Run all of a page in a folder, and fail where something else is printed than the page says."""
    (folder / "examples").symlink_to(ROOT / "examples")
    names, checker = {}, doctest.OutputChecker()
    printed_so_far = ""
    for kind, text in FENCED.findall(path.read_text()):
        if kind == "text":  # parts of what was printed, with ... for what was left out
            for part in text.split("...\n"):
                assert " ".join(part.split()) in printed_so_far, f"{path.name}: nothing printed\n{part}"
            continue
        if kind == "python":
            test = doctest.DocTestParser().get_doctest(text, names, path.name, str(path), 0)
            failed, _ = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, clear_globs=False)
            assert not failed, f"{path.name}: an example in Python fails"
            names = test.globs
            continue
        for command, expected in sessions(text):
            if command.startswith("cat "):  # a file that the page shows is a file that it needs
                (folder / command.removeprefix("cat ")).write_text(expected)
            elif not command.startswith(OTHERS):
                done = ucbf(*shlex.split(command)[1:], check=False, alone="--trust" in command)
                printed = done.stdout + done.stderr
                printed_so_far += " ".join(printed.split()) + " "
                assert done.returncode in (0, 2), printed
                assert (done.returncode == 2) == expected.startswith("ucbf: "), printed
                assert checker.check_output(expected, printed, FLAGS) or not expected, f"$ {command}\n{printed}"
