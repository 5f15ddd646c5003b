"""The cells to copy of the lesson on video and episodes, on videos of other kinds."""

import contextlib
import itertools
import json
import random
import tempfile
from fractions import Fraction
from pathlib import Path

import feed_video_and_episodes as lesson
import feed_video_and_episodes_in_depth as depth
import numpy as np
from expecting import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

OPEN_GOP = {"x264-params": "open-gop=1:scenecut=0"}
FILES = [f"{number}.mp4" for number in range(99)]
VARIABLE = np.random.default_rng(0).integers(5, 200, 60).cumsum() / 1_000  # seconds


@contextlib.contextmanager
def folder_of():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def images_of(length, height=64, width=64, episode=3):
    """Frames that bear their numbers: above the one grey, below the other."""
    images = np.full((length, height, width, 3), 30, np.uint8)
    images[:, : height // 2] = episode * 8
    images[:, height // 2 :] = (np.arange(length) * 4)[:, None, None, None]
    return images


def numbers(frames):
    quarter = frames.shape[1] // 4
    # A scaler rounds down: it makes 10 of 12.
    return np.rint((frames[:, -quarter:].mean((1, 2, 3)) + 0.5) / 4).astype(int)


def taken(batches, steps, *arguments, **options):
    with contextlib.closing(batches(*arguments, **options)) as stream:
        return list(itertools.islice(stream, steps))


# Frames by time ------------------------------------------------------------------------------


def test_frames():
    """Every frame of every kind of video is found by its time, alone and with others behind it."""
    kinds = {
        "keyframes only": {"g": "1", "bf": "0"},
        "B-frames": {"g": "12", "bf": "3"},
        "one keyframe": {"g": "250", "bf": "3"},
        "open GOPs": {"g": "12", "bf": "3"} | OPEN_GOP,
        "variable rate": {"times": VARIABLE},
        "it begins late": {"times": VARIABLE + 5},
        "odd sizes": {"size": (37, 51)},
        "one frame": {"length": 1},
        "VP9": {"codec": "libvpx-vp9", "bf": "0", "cpu-used": "8", "suffix": "webm"},
        "Matroska": {"suffix": "mkv", "times": VARIABLE},
    }
    with folder_of() as folder:
        for said, kind in kinds.items():
            length, size = kind.pop("length", 60), kind.pop("size", (64, 64))
            file = folder / f"{said}.{kind.pop('suffix', 'mp4')}"
            lesson.write_video(file, images_of(length, *size), 10, **kind)
            times = lesson.times_in(file)
            assert len(times) == length, f"{said}: {len(times)} times of {length} frames."
            tolerance = np.diff(times).min(initial=0.02) / 2
            for first in range(length):
                rows = [row for row in (first, first + 2, first + 5) if row < length]
                try:
                    frames = lesson.frames_at(file, times[rows], tolerance)
                except ValueError as error:
                    raise AssertionError(f"{said}: frame {first} is lost: {error}") from error
                assert frames.shape == (len(rows), *size, 3), f"{said}: frames of {frames.shape}."
                assert numbers(frames).tolist() == rows, f"{said}: not the frames of {rows}."
            shuffled = random.Random(0).sample(range(length), length)
            frames = lesson.frames_at(file, times[shuffled], tolerance)
            assert numbers(frames).tolist() == shuffled, f"{said}: not in the order of the times."


def test_times():
    """A time that no frame has is refused; of two near frames the nearer one comes."""
    frames_at, said = lesson.frames_at, "a time without a frame"
    with folder_of() as folder:
        file = folder / "a.mp4"
        lesson.write_video(file, images_of(20), 10)
        for time in (-1, 0.05, 0.98, 2.0, 50):
            sentence = refusal(said, lambda time=time: frames_at(file, [0.3, time], 0.01))
            assert "a.mp4" in sentence and f"{time:.2f}" in sentence, sentence
        lesson.write_video(file, images_of(20), 10, g="10", bf="0", sc_threshold="0")
        for times in ([0.34, 0.36, 0.42], [0.94, 1.16], [0.96], [0.94]):  # a keyframe is at 1.0
            found = numbers(frames_at(file, times, 0.2)).tolist()
            nearest = [round(10 * time) for time in times]
            assert found == nearest, f"not the nearest frames of {times}: {found}."
        frames = frames_at(file, [0.3, 0.3, 0.5], 0.01, size=(20, 30))
        found = numbers(frames).tolist()
        assert frames.shape == (3, 20, 30, 3), f"`size` gives {frames.shape}."
        close = np.arange(30) / 30
        close[12] = close[11] + 0.0005
        lesson.write_video(file, images_of(30), 30, times=close, bf="0", g="1")
        near = numbers(frames_at(file, lesson.times_in(file)[[11]])).tolist()
        assert near == [11], f"not the nearest of two close frames: {near}."
        assert found == [3, 3, 5], f"a time twice: {found}."


def test_damage():
    """A file that is cut, empty, no video or not there is named."""
    frames_at = lesson.frames_at
    with folder_of() as folder:
        file, noise = folder / "whole.mp4", np.random.default_rng(0)
        images = noise.integers(0, 256, (60, 64, 64, 3), np.uint8)
        lesson.write_video(file, images, 10)
        times, data = lesson.times_in(file), file.read_bytes()
        for said, bad in {
            "a truncated file": data[: len(data) // 2],
            "an empty file": b"",
            "text": b"no video at all " * 99,
        }.items():
            (folder / "bad.mp4").write_bytes(bad)
            for call in (
                lambda: frames_at(folder / "bad.mp4", times[30:34], 0.05),
                lambda: lesson.times_in(folder / "bad.mp4"),
            ):
                assert "bad.mp4" in refusal(said, call), f"{said} is not named."
        assert "gone.mp4" in refusal("no file", lambda: frames_at(folder / "gone.mp4", [0]))
        lesson.write_video(folder / "stream.mkv", images, 10)
        data = (folder / "stream.mkv").read_bytes()
        (folder / "half.mkv").write_bytes(data[: len(data) // 2])
        frames_at(folder / "half.mkv", times[:4], 0.02)
        refusal("the lost half", lambda: frames_at(folder / "half.mkv", times[50:54], 0.02))


# Windows -------------------------------------------------------------------------------------


def columns_of(lengths):
    """Rows that are their own numbers, two episodes in a file, in no order of their names."""
    episode = np.repeat(np.arange(len(lengths))[::-1], lengths)
    time = np.concatenate([np.arange(n) / 10 + 100 * (e % 2) for e, n in enumerate(lengths)])
    return {
        "episode": episode,
        "video": episode // 2,
        "time": time,
        "row": np.arange(len(time)),
    }


@tried(
    2,
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    length=st.integers(1, 9),
    every=st.integers(1, 4),
)
def test_windows(lengths, length, every):
    """Each window that fits is there once, within its episode, and short episodes are counted."""
    columns = columns_of(lengths)
    windows = lesson.Windows(FILES, columns, length, every)
    span = (length - 1) * every
    assert len(windows) == sum(max(n - span, 0) for n in lengths), "windows are lost, or too many."
    assert windows.left_out == sum(n <= span for n in lengths), "short episodes are miscounted."
    rows = windows.starts[:, None] + windows.offsets
    assert (np.diff(rows, axis=1) == every).all() and len(np.unique(windows.starts)) == len(rows)
    assert (np.ptp(columns["episode"][rows], axis=1) == 0).all(), "a window crosses."


def test_inputs():
    """What cannot work is refused."""
    Windows, columns = lesson.Windows, columns_of([5, 6])
    for said, change in {
        "columns of unequal lengths": {"row": np.arange(3)},
        "times that go back": {"time": columns["time"][::-1]},
        "times that stand still": {"time": np.zeros(11)},
        "an episode in two parts": {"episode": np.array([0] * 4 + [1] * 4 + [0] * 3)},
        "an episode in two files": {"video": np.arange(11)},
        "episodes of one video, each from 0 on": {
            "video": np.zeros(11, int),
            "time": np.r_[0:5, 0:6] / 10,
        },
        "times that are no numbers": {"time": columns["time"] * np.nan},
        "no rows": {name: column[:0] for name, column in columns.items()},
    }.items():
        refusal(said, lambda change=change: Windows(FILES, columns | change, 2))
    listed = {name: column.tolist() for name, column in columns.items()}
    listed["episode"] = [f"episode {number}" for number in listed["episode"]]
    windows = Windows(FILES, listed, 2)
    assert windows.starts.tolist() == Windows(FILES, columns, 2).starts.tolist()
    for arguments in ((0,), (2, 0), (-1,), (2, 1, 0), (2, 1, 3)):
        refusal("a length", lambda arguments=arguments: Windows(FILES, columns, *arguments))
    windows = counted(columns)
    for wrong in (
        {"batch_size": 0},
        {"batch_size": 99},
        {"batch_size": 2, "start": -1},
        {"batch_size": 2, "process": 2, "processes": 2},
        {"batch_size": 2, "processes": 0},
        {"batch_size": 2, "seed": -1},
        {"batch_size": 2, "threads": 0},
    ):
        refusal(f"{wrong}", lambda wrong=wrong: lesson.batches(windows, **wrong))
    sizes = [{"frames": np.zeros((2, size, 4, 3))} for size in (3, 4)]
    sentence = refusal("frames of two sizes", lambda: lesson.stacked(sizes))
    assert "`size`" in sentence, "frames of two sizes are not named."


def counted(columns, reads=None):
    """In place of Windows: a window is its number."""

    class Counted(list):
        def __getitem__(self, number):
            if reads is not None:
                reads.append(number)
            return {"frames": np.full((1, 2, 2, 3), number % 256), "row": np.int64(number)}

    return Counted(columns["row"])


@tried(
    4,
    count=st.integers(1, 200),
    batch_size=st.integers(1, 20),
    processes=st.integers(1, 5),
    start=st.integers(0, 60),
    seed=st.integers(0, 99) | st.just(2**32),
)
def test_stream(count, batch_size, processes, start, seed):
    """An epoch has each window once, on any number of processes; any step can be the first."""
    batches, windows = lesson.batches, counted({"row": range(count)})
    steps = count // (batch_size * processes)
    if not steps:
        refusal("few windows", lambda: batches(windows, batch_size, processes=processes))
        return
    streams = []
    for process in range(processes):
        options = {"process": process, "processes": processes, "threads": 2}
        whole = taken(batches, 2 * steps + 2, windows, batch_size, seed, **options)
        streams.append([batch["row"] for batch in whole])
        at = start % (2 * steps)
        resumed = taken(batches, 2, windows, batch_size, seed, at, **options)
        for batch, rows in zip(resumed, streams[-1][at:], strict=False):
            assert np.array_equal(batch["row"], rows), f"from step {at} others come."
    rows = np.array(streams)
    assert rows.shape[2] == batch_size, "a batch has another size."
    for epoch in (rows[:, :steps], rows[:, steps : 2 * steps]):
        assert len(np.unique(epoch)) == epoch.size, "a window comes twice."
    if rows[:, :steps].size > 30:
        again = np.array_equal(rows[:, :steps], rows[:, steps : 2 * steps])
        assert not again, "two epochs have one order."


def test_ahead():
    """The stream decodes two batches ahead, and no more; all of a list that ends come."""
    reads = []
    taken(lesson.batches, 3, counted({"row": range(100)}, reads), 5, threads=1)
    assert len(reads) <= 25, f"{len(reads)} windows are decoded for three batches of five."
    for count in range(5):
        found = [
            *lesson.stream_of(counted({"row": range(9)}), [[n, n + 1] for n in range(count)], 2)
        ]
        assert len(found) == count, f"{count - len(found)} batches at the end are lost."


# Tables and folders --------------------------------------------------------------------------


def test_lerobot():
    """A dataset comes as it was written: frames, states and actions of each row, in any order."""
    lengths = [1, 20, 7, 2, 33, 12]
    with folder_of() as folder:
        camera = "observation.images.top"
        depth.make_episodes(folder, lengths, camera)
        files, columns = depth.lerobot(folder, camera)
        assert np.bincount(columns["episode"]).tolist() == lengths, "rows are lost."
        states = np.concatenate([lesson.episode_of(e, n)[1] for e, n in enumerate(lengths)])
        assert np.array_equal(columns["observation.state"], states), "states are other ones."
        windows = lesson.Windows(files, columns, 2)
        assert windows.left_out == 1, "the episode of one frame is not counted."
        for number in range(len(windows)):
            window = windows[number]
            episode, index = lesson.numbers_in(window["frames"])
            assert np.array_equal(episode, window["episode"]), "frames of another episode."
            row = np.searchsorted(columns["episode"], episode[0]) + index
            assert np.array_equal(window["action"], columns["action"][row]), "another row's frames."
        import pyarrow.parquet as pq

        for file in folder.rglob("*.parquet"):  # rows in another order
            table = pq.read_table(file)
            pq.write_table(table.take(np.random.default_rng(0).permutation(len(table))), file)
        _, mixed = depth.lerobot(folder, camera)
        for name, column in columns.items():
            assert np.array_equal(mixed[name], column), f"{name} follows the order of the file."
        has = refusal("another camera", lambda: depth.lerobot(folder, "observation.images.no"))
        assert camera in has, "the cameras are not named."
        for part in ("meta/episodes", "data"):
            [file] = (folder / part).rglob("*.parquet")
            table = pq.read_table(file)
            pq.write_table(table.slice(1), file)
            refusal(f"{part} lacks a row", lambda: depth.lerobot(folder, camera))
            pq.write_table(table, file)
        depth.lerobot(folder, camera)
        info = json.loads((folder / "meta/info.json").read_text()) | {"codebase_version": "v2.1"}
        (folder / "meta/info.json").write_text(json.dumps(info))
        assert "v2.1" in refusal("an older version", lambda: depth.lerobot(folder, camera))


def test_columns():
    """Nulls and lists of several lengths are refused; numbers come as they are."""
    import pyarrow as pa

    array_of = depth.array_of
    for said, values in {
        "a null": [1, None],
        "a null in a list": [[1, None], [1, 2]],
        "a null list": [[1, 2], None],
        "lists of two lengths": [[1], [1, 2, 3]],
    }.items():
        assert "'x'" in refusal(said, lambda v=values: array_of("x", pa.chunked_array([v])))
    for values in ([1, 2], [[1.5, 2], [3, 4]], [[1], [2]]):
        parts = pa.chunked_array([values, values])
        assert np.array_equal(array_of("x", parts), values + values)
    fixed = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2))[1:]
    assert np.array_equal(array_of("x", pa.chunked_array([fixed])), [[3, 4], [5, 6]])


def test_folder():
    """Videos of any suffix and size, each an episode; hidden files are passed over."""
    with folder_of() as folder:
        refusal("no video", lambda: lesson.videos_in(folder), FileNotFoundError)
        (folder / "b").mkdir()
        kinds = {"b/1.MP4": (64, 64), "2.mkv": (37, 51), "b/3.mov": (64, 64)}
        for number, (name, size) in enumerate(kinds.items()):
            lesson.write_video(folder / name, images_of(9 + number, *size), 10)
        lesson.write_video(folder / "one.mp4", images_of(1), 10)
        (folder / ".hidden.mp4").write_bytes(b"")
        (folder / "notes.txt").write_text("no video")
        files, columns = lesson.videos_in(folder)
        found = [file.relative_to(folder).as_posix() for file in files]
        assert found == ["2.mkv", "b/1.MP4", "b/3.mov", "one.mp4"], f"files: {found}."
        assert np.bincount(columns["episode"]).tolist() == [10, 9, 11, 1], "frames are lost."
        windows = lesson.Windows(files, columns, 4, size=(32, 32))
        assert len(windows) == 7 + 6 + 8 and windows.left_out == 1
        for number in range(len(windows)):
            start = windows.starts[number] - np.searchsorted(
                columns["episode"], columns["episode"][windows.starts[number]]
            )
            found = numbers(windows[number]["frames"]).tolist()
            assert found == [start, start + 1, start + 2, start + 3], "other frames."
        (folder / "bad.mp4").write_bytes(b"x" * 999)
        assert "bad.mp4" in refusal("a damaged file", lambda: lesson.videos_in(folder))
        skipped, _ = lesson.videos_in(folder, skip=["bad.mp4"])
        assert skipped == files, "`skip` leaves out other files."
        (folder / "b/bad.mp4").write_bytes(b"x" * 999)
        sentence = refusal("two damaged files", lambda: lesson.videos_in(folder))
        assert "b/bad.mp4" in sentence and f"{folder}/bad.mp4" in sentence, sentence
        both = lesson.videos_in(folder, skip=["bad.mp4", "b/bad.mp4"])
        assert both[0] == files, "`skip` leaves out other files."
        (folder / "bad.mp4").unlink()
        (folder / "b/bad.mp4").unlink()
        for wrong in (["bed.mp4"], "bad.mp4", ["1.MP4"]):
            refusal(f"skip {wrong}", lambda wrong=wrong: lesson.videos_in(folder, skip=wrong))


def test_version():
    """The same episodes have the same version; what numbers windows anew has another one."""
    Windows, columns = lesson.Windows, columns_of([9, 9, 9])
    same = {Windows(["a", "b"], columns, 3).version for _ in range(2)}
    assert len(same) == 1, "the version changes by itself."
    shorter = {name: column[:-1] for name, column in columns.items()}
    later = columns | {"time": columns["time"] + 1}
    other = columns | {"episode": np.repeat([2, 0], [9, 18]), "video": np.repeat([0, 1], [9, 18])}
    other["time"] = np.arange(27.0)
    same_time = columns_of([9, 9, 9]) | {"time": np.arange(27.0)}
    made = [
        Windows(["a", "b"], columns, 3),
        Windows(["a", "c"], columns, 3),
        Windows(["a", "b"], columns, 4),
        Windows(["a", "b"], columns, 3, 2),
        Windows(["a", "b"], shorter, 3),
        Windows(["a", "b"], later, 3),
        Windows(["a", "b"], other, 3),
        Windows(["a", "b"], same_time, 3),
    ]
    versions = [windows.version for windows in made]
    assert len(set(versions)) == len(made), "another dataset has the same version."


# The depth -----------------------------------------------------------------------------------


def test_stretches():
    """A stretch holds neighbours of one episode, each window in at most one of them."""
    lengths = [3, 30, 4, 11, 2, 19]
    with folder_of() as folder:
        depth.make_episodes(folder, lengths, "top")
        files, columns = depth.lerobot(folder, "top")
        windows = lesson.Windows(files, columns, 4, 2, seen=2)
        stretches = depth.Stretches(windows, 3)
        for number, first in enumerate(stretches.firsts):
            found = stretches[number]
            for at in range(3):
                for name, array in windows[first + at].items():
                    assert np.array_equal(found[name][at], array), f"stretches: other {name}."
    for length, every, wide in ((4, 1, 3), (2, 3, 5), (1, 1, 2), (3, 1, 1)):
        windows = lesson.Windows(files, columns, length, every, seen=1)
        stretches, span = depth.Stretches(windows, wide), (length - 1) * every
        assert len(stretches) == sum(max(n - span, 0) // wide for n in lengths), "stretches"
        episode = columns["episode"][windows.starts]
        rows = stretches.firsts[:, None] + np.arange(wide)
        assert len(np.unique(rows)) == rows.size, "a window is in two stretches."
        assert stretches.left_out == len(windows) - rows.size, "what is left out is miscounted."
        assert (np.ptp(episode[rows], axis=1) == 0).all(), "a stretch crosses."


def test_decoders():
    """At most so many files are open in a thread, and each answers for its own file."""
    with folder_of() as folder:
        for number in range(5):
            images = images_of(30, episode=number * 4)
            lesson.write_video(folder / f"{number}.mp4", images, 10)
        decoders, opened = depth.Decoders(2), []

        def first(number, time=0.3):
            return lesson.frames_at(folder / f"{number}.mp4", [time], opened=decoders)[0]

        for number in (0, 1, 0, 2, 0, 3, 4, 0, 0):
            assert round(first(number)[4].mean() / 32) == number, "frames of another file."
            opened.append(decoders.local.held[str(folder / f"{number}.mp4")])
        assert opened[0] is opened[2] is opened[4], "a file that is in use is opened again."
        assert len(decoders.local.held) == 2, f"{len(decoders.local.held)} files are open."
        for time in (2.9, 0.0, 1.3, 2.9, 0.1):  # after the end, and back
            assert numbers(first(0, time)[None])[0] == round(time * 10), "another frame."
        refusal("no frame", lambda: first(0, 3.5))
        assert numbers(first(0, 0.4)[None])[0] == 4, "another frame after an error."
    refusal("no decoder", lambda: depth.Decoders(0))


def test_cameras():
    """Cameras with the same rows are joined, others are refused."""
    with folder_of() as folder:
        lengths = [5, 9, 3]
        for camera in ("top", "side"):
            depth.make_episodes(folder / camera, lengths, camera)
        top, side = (depth.lerobot(folder / c, c) for c in ("top", "side"))
        windows = lesson.Windows(*top, 3)
        both = depth.Cameras(windows, side=lesson.Windows(*side, 3))
        for number in range(len(both)):
            found = both[number]
            assert np.array_equal(found["frames"], found["side"]), "other frames."
            assert {"action", "episode"} < found.keys()
        alone = depth.Cameras(windows)
        assert alone.version != both.version, "another camera has the same version."
        refusal("a name twice", lambda: depth.Cameras(windows, action=lesson.Windows(*side, 3)))
        files, columns = side
        apart = lesson.Windows(*side, 2, 2)
        refusal("rows apart", lambda: depth.Cameras(windows, side=apart))
        shorter = {name: column[columns["episode"] != 1] for name, column in columns.items()}
        changed = columns | {"action": columns["action"] + 1}
        for arguments in ((files, columns, 2), (files, shorter, 3), (files, changed, 3)):
            other = lesson.Windows(*arguments)
            refusal("other rows", lambda other=other: depth.Cameras(windows, side=other))


def test_raw():
    """What is decoded once has the frames of the videos, and refuses other rows."""
    with folder_of() as folder:
        for number, length in enumerate((230, 1, 40)):
            lesson.write_video(folder / f"{number}.mp4", images_of(length, episode=number), 30)
        files, columns = lesson.videos_in(folder)
        windows = lesson.Windows(files, columns, 3, 2, seen=2, size=(32, 40))
        depth.decode_once(windows, folder / "frames.npy")
        raw = depth.Raw(folder / "frames.npy", files, columns, 3, 2, 2, size=(32, 40))
        assert len(raw) == len(windows) and raw.version == windows.version
        for number in range(0, len(raw), 7):
            for name, array in windows[number].items():
                assert np.array_equal(raw[number][name], array), f"another {name}."
        fewer = {name: column[:-1] for name, column in columns.items()}
        refusal("other rows", lambda: depth.Raw(folder / "frames.npy", files, fewer, 3))
        other = folder / "other"
        for number, length in enumerate((230, 1, 40)):
            lesson.write_video(other / f"{number}.mp4", images_of(length, episode=number + 5), 30)
        for arguments, size in (
            ((files, columns), (20, 30)),
            (lesson.videos_in(other), (32, 40)),
        ):
            refusal(
                "other frames",
                lambda a=arguments, s=size: depth.Raw(folder / "frames.npy", *a, 3, 2, 2, size=s),
            )
        lesson.write_video(folder / "3.mp4", images_of(9, 32, 32), 30)
        mixed = lesson.Windows(*lesson.videos_in(folder), 3)
        refusal("sizes", lambda: depth.decode_once(mixed, folder / "mixed.npy"))
        assert not (folder / "mixed.npy").exists(), "half of the frames look like all."


def test_sound():
    """Sound comes to the sample, of any rate and channels; behind its end there is none."""
    import av

    for name, codec, layout, rate in (
        ("a.wav", "pcm_s16le", "mono", 44_100),
        ("a.flac", "flac", "stereo", 8_000),
        ("a.mp4", "aac", "mono", 48_000),
        ("a.opus", "libopus", "stereo", 48_000),
    ):
        with folder_of() as folder:
            file, wave = folder / name, lambda t: np.sin(2 * np.pi * (300 + 20 * t) * t) / 2
            tone = wave(np.arange(10 * rate) / rate).astype(np.float32)
            channels = np.stack([tone] * (2 if layout == "stereo" else 1))
            with av.open(str(file), "w") as media:
                stream = media.add_stream(codec, rate, layout=layout)
                heard = av.AudioFrame.from_ndarray(channels, "fltp", layout)
                heard.sample_rate, heard.time_base, heard.pts = rate, Fraction(1, rate), 0
                media.mux(stream.encode(heard))
                media.mux(stream.encode())
            for start, seconds, to in ((0, 0.5, 16_000), (3.21, 0.25, 16_000), (9, 0.9, 22_050)):
                sound = depth.sound_at(file, start, seconds, to)
                count = round(seconds * to)
                assert sound.shape == (count,) and sound.dtype == np.float32
                alike = [
                    np.corrcoef(sound, wave(start + (np.arange(count) + late) / to))[0, 1]
                    for late in range(-20, 21)
                ]  # a codec changes the wave, but not its time
                assert abs(np.argmax(alike) - 20) <= 1, f"{name}: another sound at {start}."
                assert max(alike) > 0.9 and 0.4 < abs(sound).max() < 0.7, f"{name}: not the sound."
            for start in (9.8, 60, -1):
                said = refusal("no sound", lambda s=start, f=file: depth.sound_at(f, s, 0.5))
                assert name in said, said
    with folder_of() as folder:
        lesson.write_video(folder / "mute.mp4", images_of(9), 10)
        windows = lesson.Windows(*lesson.videos_in(folder), 3)
        said = refusal("a mute video", lambda: depth.Sounding(windows, 0.1)[0])
        assert "mute.mp4" in said, said
        for seconds in (0, -1, 0.3):
            refusal("seconds", lambda s=seconds: depth.Sounding(windows, s))
        versions = {depth.Sounding(windows, s).version for s in (0.1, 0.2)}
        assert len(versions) == 2, "another length has the same version."


def test_without_damaged():
    """Damaged files are named and left out, up to the bound; the other rows come as they are."""
    noise = np.random.default_rng(0).integers(0, 256, (150, 32, 32, 3), np.uint8)
    for suffix in ("mkv", "webm", "mp4"):
        codec = {"codec": "libvpx-vp9"} if suffix == "webm" else {}
        with folder_of() as folder:
            for part in (1, 2):
                lesson.write_video(file := folder / f"{part}.{suffix}", noise, 10, **codec)
                if part == 2 and suffix != "mp4":
                    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
            whole, faults = depth.without_damaged(*lesson.videos_in(folder), most=1)
            cut = [f"2.{suffix}"] if suffix != "mp4" else []
            assert [f.partition(":")[0].split("/")[-1] for f in faults] == cut, (
                f"are named: {faults}"
            )
            assert len(whole["time"]) == 300 - 150 * len(cut), "rows of whole files are lost."
    for bad in ((), (1,), (0, 3), (0, 1, 2, 3)):
        with folder_of() as folder:
            for number in range(4):
                lesson.write_video(folder / f"{number}.mp4", noise, 10)
            files, columns = lesson.videos_in(folder)
            columns["row"] = np.arange(len(columns["time"]))
            for number in bad:
                data = files[number].read_bytes()
                files[number].write_bytes(data[: len(data) * 3 // 4])
            whole, faults = depth.without_damaged(files, columns, most=len(bad))
            assert len(faults) == len(bad), f"{len(faults)} files are named, not {len(bad)}."
            for number, said in zip(bad, faults, strict=True):
                assert f"{number}.mp4" in said, f"another file is named: {said}"
            right = ~np.isin(columns["episode"], bad)
            assert np.array_equal(whole["row"], columns["row"][right]), "other rows remain."
            if bad:
                arguments = files, columns, len(bad) - 1
                said = refusal("too many bad files", lambda a=arguments: depth.without_damaged(*a))
                assert f"{bad[-1]}.mp4" in said
