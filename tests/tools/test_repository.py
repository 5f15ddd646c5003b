"""What the files say of each other: commands, addresses, pins, tags."""

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from packaging.requirements import Requirement

from tools.check import check
from tools.lesson import lessons

pytestmark = pytest.mark.slow

ROOT = lessons.ROOT


def jobs_of(workflow: str) -> dict[str, dict]:
    return yaml.safe_load((ROOT / f".github/workflows/{workflow}.yml").read_text())["jobs"]


# From the lowest to the highest: what stands in one may import itself and what stands below it.
ROOMS = ["offline", "tools/lesson", "tools/run", "tools/site", "tools/check", "benchmarks", "tests"]
WORKFLOWS = sorted(path.stem for path in (ROOT / ".github/workflows").glob("*.yml"))


def imported(source: str) -> set[str]:
    """The dotted names of all that a program imports, wherever in it."""
    nodes = [*ast.walk(ast.parse(source))]
    modules = {n.name for node in nodes if isinstance(node, ast.Import) for n in node.names}
    imports_from = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return modules | {f"{node.module}.{name.name}" for node in imports_from for name in node.names}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_nothing_from_a_room_above_it(room):
    above = [other.replace("/", ".") for other in ROOMS[ROOMS.index(room) + 1 :]]
    files = [*(ROOT / room).rglob("*.py")]
    assert files
    upwards = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name in imported(file.read_text())
        if any(f"{name}.".startswith(f"{other}.") for other in above)
    }
    assert upwards == set()


def command(job: dict, words: str) -> str:
    """What the one step of the job runs that has the words."""
    [found] = [step["run"] for step in job["steps"] if words in step.get("run", "")]
    return found


def requirements(file: str) -> list[Requirement]:
    """What a file of requirements asks for, without its comments, options and hashes."""
    lines = (ROOT / file).read_text().splitlines()
    lines = (line.partition(" #")[0].rstrip("\\").strip() for line in lines)
    return [Requirement(line) for line in lines if line and line[0] not in "#-"]


def test_what_a_lesson_installs_in_colab_has_the_bound_of_the_requirements():
    bounds = {r.name.replace("-", "_"): r.specifier for r in requirements("requirements.txt")}
    installed = set()
    for name in lessons.names():
        for line in re.findall(r"%pip install -q (.*)", lessons.md_path(name).read_text()):
            installed.update(line.replace('"', "").split())
    assert installed
    for requirement in map(Requirement, installed):  # with a bound: Colab may have an older one
        lower = {part for part in requirement.specifier if part.operator != "<"}
        assert not lower or lower == set(bounds[requirement.name.replace("-", "_")])


def test_the_light_environment_takes_names_from_the_requirements():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    *light, constraints = tox["light"]["deps"].split("\n")[1:]
    assert constraints == "-c constraints.txt"
    assert set(light) < {requirement.name for requirement in requirements("requirements.txt")}


def test_the_citation_names_the_newest_release():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert headings in (released, ["Unreleased", *released])
    assert all(re.fullmatch(r"\d\S* \(\d{4}-\d\d-\d\d\)", heading) for heading in released)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert f'REPOSITORY = "{citation["repository-code"]}"\n' in (ROOT / "conf.py").read_text()
    cited = (
        [f"{citation['version']} ({citation['date-released']})"] if "version" in citation else []
    )
    assert cited == released[:1]


def test_a_sentence_that_was_mended_on_github_gets_the_patch_that_is_missing(tmp_path, python):
    def clone(name):
        subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, tmp_path / name], check=True)
        lesson = tmp_path / name / "md/grain.md"
        lesson.write_text(lesson.read_text().replace("# Feed JAX", "# Give JAX", 1))
        commit = [
            "git",
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "commit",
            "-qam",
            "x",
        ]
        subprocess.run(commit, cwd=tmp_path / name, check=True)
        return tmp_path / name

    def faults(folder):
        said = python("-m", "tools.check.check", cwd=folder).stderr.splitlines()
        return [line for line in said if "grain.ipynb" in line or "README" in line]

    on_github, at_home = clone("on_github"), clone("at_home")
    tox = tmp_path / "bin/python"
    tox.parent.mkdir()
    tox.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tools.check.check --fix\n')
    tox.chmod(0o755)
    summary = tmp_path / "summary"
    environment = os.environ | {"PATH": f"{tox.parent}:{os.environ['PATH']}"}
    environment["GITHUB_STEP_SUMMARY"] = str(summary)
    mend = ["bash", "-e", "-c", command(jobs_of("test")["check"], "fix.patch")]
    subprocess.run(mend, cwd=on_github, env=environment, check=True)
    [apply] = re.findall(r"`(git apply .*)`", summary.read_text())
    shutil.copy(on_github / "fix.patch", at_home)
    assert len(faults(at_home)) == 2  # its table has the title, too
    subprocess.run(apply.split(), cwd=at_home, check=True)
    assert faults(at_home) == []


def test_a_release_has_its_notes_and_notebooks_that_pass_in_an_empty_folder(
    tmp_path, python, data, monkeypatch
):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    parts = ["## Unreleased", "- c", "## 1.1 (2026-12-01)", "- b", "## 1.0 (2026-11-01)", "- a\n"]
    (clone / "CHANGELOG.md").write_text("\n\n".join(parts))

    def pack(tag):
        monkeypatch.setenv("TAG", tag)
        script = ["bash", "-e", "-c", command(jobs_of("release")["pack"], "git archive")]
        return subprocess.run(script, cwd=clone, capture_output=True, text=True, check=False)

    refused = pack("v1.2")
    assert refused.returncode == 1 and "has no heading `## 1.2 (" in refused.stderr
    for tag, notes in {"v1.1": "- b", "v1.0": "- a"}.items():
        assert pack(tag).returncode == 0
        assert (clone / "_build/release/notes.md").read_text().strip() == notes

    shutil.unpack_archive(clone / "_build/release/feed-jax-v1.0.zip", tmp_path / "empty")
    [folder] = (tmp_path / "empty").iterdir()
    assert folder.name == "feed-jax-v1.0" and not (folder / "tests").exists()
    packed = {path.stem for path in (folder / "notebooks").glob("*.ipynb")}
    assert packed == {*lessons.names()}
    (folder / "notebooks/data").symlink_to(data)
    quick = folder / "notebooks/choose_a_loader.ipynb"  # seconds
    check_it = ("-m", "pytest", "--nbval", "-q", quick)
    done = python(*check_it, cwd=folder)
    assert done.returncode == 0, done.stdout
    quick.write_text(quick.read_text().replace('"import ', '"1 / 0; import ', 1))
    assert python(*check_it, cwd=folder).returncode == 1


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_to_files_lead_somewhere(file):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / file).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_a_job_that_may_write_runs_neither_a_package_nor_the_project():
    jobs = [job for workflow in WORKFLOWS for job in jobs_of(workflow).values()]
    writing = [job for job in jobs if "write" in job["permissions"].values()]
    assert len(writing) == 3  # the site's, the weekly pull request's and the release's
    for job in writing:
        commands = " ".join(step.get("run", "") for step in job["steps"])
        assert not re.search(r"\b(python|pip|tox|uv|bash|sh|make)\b|\./", commands)


def test_each_file_that_the_weekly_job_may_change_is_there():
    takes = command(jobs_of("weekly")["propose"], "git apply")
    files = re.findall(r"--include='?([^\s']+)", takes)
    assert "colab.json" in files
    assert [file for file in files if not [*ROOT.glob(file)]] == []


def test_the_gpu_job_fails_without_a_gpu(python):
    [job] = jobs_of("gpu").values()
    assert "--require-gpu" in command(job, "tox run -e gpu").split()
    arguments = ["-m", "pytest", "--nbval", "--require-gpu", "notebooks/dlpack_zero_copy.ipynb"]
    done = python(*arguments, cwd=ROOT, env={"JAX_PLATFORMS": "cpu"})
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "JAX sees no GPU here" in done.stderr and "Traceback" not in done.stderr


def test_on_github_the_placeholder_has_to_go(monkeypatch):
    assert [*check.check_address()] == []
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/feed-jax")
    [sentence] = check.check_address()
    assert "git grep -l YOUR_ACCOUNT/" in sentence


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_runs_jobs_that_exist(workflow):
    sections = re.findall(r"^\[testenv:(.*)\]$", (ROOT / "tox.ini").read_text(), re.MULTILINE)
    steps = [step.get("run", "") for job in jobs_of(workflow).values() for step in job["steps"]]
    used = set(re.findall(r"tox run (?:-q )?-e ([\w-]+)", " ".join(steps)))
    assert used <= set(re.findall(r"[\w-]+", " ".join(sections)))
