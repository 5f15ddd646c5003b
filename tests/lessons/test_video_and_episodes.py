"""A run that is killed goes on with the very next window, in another process."""

import hashlib
import itertools
import signal
import subprocess
import sys

from copied_cells import source_with

CELLS = "def frames_at", "class Decoders", "def batches(", "def video_episodes"
RUN = """
import hashlib, os, signal, sys
start, stop = map(int, sys.argv[1:])
windows = Windows(video_episodes("videos"), length=2)
for step, batch in enumerate(batches(windows, 4, seed=3, start=start), start):
    print(step, hashlib.sha256(batch["frames"].tobytes()).hexdigest(), flush=True)
    if step == stop:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_goes_on_with_the_very_next_window(tmp_path):
    from video_and_episodes_checks import said, write

    (tmp_path / "videos").mkdir()
    for number, length in enumerate((9, 1, 25, 14)):
        times = [frame / 30 for frame in range(length)]
        write(tmp_path / "videos" / f"{number}.mp4", times, episode=number)
    source = "\n".join([source_with(text, "video_and_episodes") for text in CELLS] + [RUN])
    (tmp_path / "run.py").write_text(source)

    def run(start, stop):
        command = [sys.executable, "run.py", str(start), str(stop)]
        done = subprocess.run(
            command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        return done.stdout.splitlines()

    whole = run(0, 24)
    assert len(whole) == 25
    assert whole[:8] + run(8, 24) == whole
    digests = [line.split()[1] for line in whole]
    assert len(set(digests)) > 20, "each step has the same windows."

    names = {}
    exec("\n".join(source_with(text, "video_and_episodes") for text in CELLS), names)
    windows = names["Windows"](names["video_episodes"](tmp_path / "videos"), length=2)
    stream = names["batches"](windows, 4, seed=3)
    for line, batch in zip(whole, itertools.islice(stream, 25), strict=True):
        assert line.split()[1] == hashlib.sha256(batch["frames"].tobytes()).hexdigest()
        found = said(batch["frames"])
        assert (found[:, 0, 0] == batch["episode"]).all()
        assert (found[:, :, 1] == batch["first"][:, None] + [0, 1]).all()
    stream.close()
