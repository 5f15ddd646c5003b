"""The cells to copy of the lesson on video and episodes, on videos of other kinds."""

import contextlib
import itertools
import json
import random
import tempfile
from pathlib import Path

import numpy as np
from copied_cells import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

OPEN_GOP = {"x264-params": "open-gop=1:scenecut=0"}
VARIABLE = np.random.default_rng(0).integers(5, 200, 60).cumsum()  # milliseconds


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
    return np.rint((frames[:, -quarter:].mean((1, 2, 3)) + 1) / 4).astype(int)


def taken(batches, steps, *arguments, **options):
    with contextlib.closing(batches(*arguments, **options)) as stream:
        return list(itertools.islice(stream, steps))


# Frames by time ------------------------------------------------------------------------------


def check_frames(names) -> None:
    """Every frame of every kind of video is found by its time, alone and with others behind it."""
    kinds = {
        "keyframes only": {"g": "1", "bf": "0"},
        "B-frames": {"g": "12", "bf": "3"},
        "one keyframe": {"g": "250", "bf": "3"},
        "open GOPs": {"g": "12", "bf": "3"} | OPEN_GOP,
        "variable rate": {"times": VARIABLE},
        "it begins late": {"times": VARIABLE + 5_000},
        "odd sizes": {"size": (37, 51)},
        "one frame": {"length": 1},
        "VP9": {"codec": "libvpx-vp9", "bf": "0", "cpu-used": "8", "suffix": "webm"},
        "Matroska": {"suffix": "mkv", "times": VARIABLE},
    }
    with folder_of() as folder:
        for said, kind in kinds.items():
            length, size = kind.pop("length", 60), kind.pop("size", (64, 64))
            file = folder / f"{said}.{kind.pop('suffix', 'mp4')}"
            names["write_video"](file, images_of(length, *size), 10, **kind)
            times = names["times_in"](file)
            assert len(times) == length, f"{said}: {len(times)} times of {length} frames."
            tolerance = np.diff(times).min(initial=0.02) / 2
            for first in range(length):
                rows = [row for row in (first, first + 2, first + 5) if row < length]
                try:
                    frames = names["frames_at"](file, times[rows], tolerance)
                except ValueError as error:
                    raise AssertionError(f"{said}: frame {first} is lost: {error}") from error
                assert frames.shape == (len(rows), *size, 3), f"{said}: frames of {frames.shape}."
                assert numbers(frames).tolist() == rows, f"{said}: not the frames of {rows}."
            shuffled = random.Random(0).sample(range(length), length)
            frames = names["frames_at"](file, times[shuffled], tolerance)
            assert numbers(frames).tolist() == shuffled, f"{said}: not in the order of the times."


def check_times(names) -> None:
    """A time that no frame has is refused; of two near frames the nearer one comes."""
    frames_at, said = names["frames_at"], "a time without a frame"
    with folder_of() as folder:
        file = folder / "a.mp4"
        names["write_video"](file, images_of(20), 10)
        for time in (-1, 0.05, 0.98, 2.0, 50):
            sentence = refusal(said, lambda time=time: frames_at(file, [0.3, time], 0.01))
            assert "a.mp4" in sentence and f"{time:.2f}" in sentence, sentence
        found = numbers(frames_at(file, [0.34, 0.36, 0.42], 0.2)).tolist()
        assert found == [3, 4, 4], f"not the nearest frames: {found}."
        frames = frames_at(file, [0.3, 0.3, 0.5], 0.01, size=(20, 30))
        found = numbers(frames).tolist()
        assert frames.shape == (3, 20, 30, 3), f"`size` gives {frames.shape}."
        assert found == [3, 3, 5], f"a time twice: {found}."


def check_damage(names) -> None:
    """A file that is cut, empty, no video or not there is named."""
    frames_at = names["frames_at"]
    with folder_of() as folder:
        file, noise = folder / "whole.mp4", np.random.default_rng(0)
        images = noise.integers(0, 256, (60, 64, 64, 3), np.uint8)
        names["write_video"](file, images, 10)
        times, data = names["times_in"](file), file.read_bytes()
        for said, bad in {
            "a truncated file": data[: len(data) // 2],
            "an empty file": b"",
            "text": b"no video at all " * 99,
        }.items():
            (folder / "bad.mp4").write_bytes(bad)
            for call in (
                lambda: frames_at(folder / "bad.mp4", times[30:34], 0.05),
                lambda: names["times_in"](folder / "bad.mp4"),
            ):
                assert "bad.mp4" in refusal(said, call), f"{said} is not named."
        assert "gone.mp4" in refusal("no file", lambda: frames_at(folder / "gone.mp4", [0]))
        names["write_video"](folder / "stream.mkv", images, 10)
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
def check_windows(names, lengths, length, every) -> None:
    """Each window that fits is there once, within its episode, and short episodes are counted."""
    columns = columns_of(lengths)
    windows = names["Windows"](range(99), columns, length, every)
    span = (length - 1) * every
    assert len(windows) == sum(max(n - span, 0) for n in lengths), "windows are lost, or too many."
    assert windows.left_out == sum(n <= span for n in lengths), "short episodes are miscounted."
    rows = windows.starts[:, None] + windows.offsets
    assert (np.diff(rows, axis=1) == every).all() and len(np.unique(windows.starts)) == len(rows)
    assert (np.ptp(columns["episode"][rows], axis=1) == 0).all(), "a window crosses."


def check_inputs(names) -> None:
    """What cannot work is refused."""
    Windows, columns = names["Windows"], columns_of([5, 6])
    for said, change in {
        "columns of unequal lengths": {"row": np.arange(3)},
        "times that go back": {"time": columns["time"][::-1]},
        "times that stand still": {"time": np.zeros(11)},
        "an episode in two parts": {"episode": np.array([0] * 4 + [1] * 4 + [0] * 3)},
        "an episode in two files": {"video": np.arange(11)},
        "times that are no numbers": {"time": columns["time"] * np.nan},
    }.items():
        refusal(said, lambda change=change: Windows(range(9), columns | change, 2))
    for arguments in ((0,), (2, 0), (-1,)):
        refusal("a length", lambda arguments=arguments: Windows(range(9), columns, *arguments))
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
        refusal(f"{wrong}", lambda wrong=wrong: names["batches"](windows, **wrong))
    sizes = [{"frames": np.zeros((2, size, 4, 3))} for size in (3, 4)]
    assert "size" in refusal("frames of two sizes", lambda: names["stacked"](sizes))


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
def check_stream(names, count, batch_size, processes, start, seed) -> None:
    """An epoch has each window once, on any number of processes; any step can be the first."""
    batches, windows = names["batches"], counted({"row": range(count)})
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


def check_ahead(names) -> None:
    """The stream decodes two batches ahead, and no more."""
    reads = []
    taken(names["batches"], 3, counted({"row": range(100)}, reads), 5, threads=1)
    assert len(reads) <= 25, f"{len(reads)} windows are decoded for three batches of five."


# Tables and folders --------------------------------------------------------------------------


def check_lerobot(names) -> None:
    """A dataset comes as it was written: frames, states and actions of each row, in any order."""
    lengths = [1, 20, 7, 2, 33, 12]
    with folder_of() as folder:
        camera = names["make_episodes"](folder, lengths)
        files, columns = names["lerobot"](folder, camera)
        assert np.bincount(columns["episode"]).tolist() == lengths, "rows are lost."
        states = np.concatenate([names["episode_of"](e, n)[1] for e, n in enumerate(lengths)])
        assert np.array_equal(columns["observation.state"], states), "states are other ones."
        windows = names["Windows"](files, columns, 2)
        assert windows.left_out == 1, "the episode of one frame is not counted."
        for number in range(len(windows)):
            window = windows[number]
            episode, index = names["numbers_in"](window["frames"])
            assert np.array_equal(episode, window["episode"]), "frames of another episode."
            row = np.searchsorted(columns["episode"], episode[0]) + index
            assert np.array_equal(window["action"], columns["action"][row]), "another row's frames."
        import pyarrow.parquet as pq

        for file in folder.rglob("*.parquet"):  # rows in another order
            table = pq.read_table(file)
            pq.write_table(table.take(np.random.default_rng(0).permutation(len(table))), file)
        _, mixed = names["lerobot"](folder, camera)
        for name, column in columns.items():
            assert np.array_equal(mixed[name], column), f"{name} follows the order of the file."
        [meta] = (folder / "meta/episodes").rglob("*.parquet")
        table = pq.read_table(meta)
        pq.write_table(table.slice(1), meta)
        refusal("an episode that meta lacks", lambda: names["lerobot"](folder, camera))
        (folder / "meta/info.json").write_text(json.dumps({"codebase_version": "v2.1"}))
        assert "v2.1" in refusal("an older version", lambda: names["lerobot"](folder, camera))


def check_columns(names) -> None:
    """Nulls and lists of several lengths are refused; numbers come as they are."""
    import pyarrow as pa

    array_of = names["array_of"]
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


def check_folder(names) -> None:
    """Videos of any suffix and size, each an episode; hidden files are passed over."""
    with folder_of() as folder:
        refusal("no video", lambda: names["videos_in"](folder), FileNotFoundError)
        (folder / "b").mkdir()
        kinds = {"b/1.MP4": (64, 64), "2.mkv": (37, 51), "b/3.mov": (64, 64)}
        for number, (name, size) in enumerate(kinds.items()):
            names["write_video"](folder / name, images_of(9 + number, *size), 10)
        names["write_video"](folder / "one.mp4", images_of(1), 10)
        (folder / ".hidden.mp4").write_bytes(b"")
        (folder / "notes.txt").write_text("no video")
        files, columns = names["videos_in"](folder)
        found = [file.relative_to(folder).as_posix() for file in files]
        assert found == ["2.mkv", "b/1.MP4", "b/3.mov", "one.mp4"], f"files: {found}."
        assert np.bincount(columns["episode"]).tolist() == [10, 9, 11, 1], "frames are lost."
        windows = names["Windows"](files, columns, 4, size=(32, 32))
        assert len(windows) == 7 + 6 + 8 and windows.left_out == 1
        for number in range(len(windows)):
            start = windows.starts[number] - np.searchsorted(
                columns["episode"], columns["episode"][windows.starts[number]]
            )
            found = numbers(windows[number]["frames"]).tolist()
            assert found == [start, start + 1, start + 2, start + 3], "other frames."
        (folder / "bad.mp4").write_bytes(b"x" * 999)
        assert "bad.mp4" in refusal("a damaged file", lambda: names["videos_in"](folder))


def check_version(names) -> None:
    """The same episodes have the same version; what numbers windows anew has another one."""
    Windows, columns = names["Windows"], columns_of([9, 9, 9])
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


def check_stretches(names) -> None:
    """A stretch holds neighbours of one episode, each window in at most one of them."""
    lengths = [3, 30, 4, 11, 2, 19]
    with folder_of() as folder:
        files, columns = names["lerobot"](folder, names["make_episodes"](folder, lengths))
    for length, every, wide in ((4, 1, 3), (2, 3, 5), (1, 1, 2), (3, 1, 1)):
        windows = names["Windows"](files, columns, length, every)
        stretches, span = names["Stretches"](windows, wide), (length - 1) * every
        assert len(stretches) == sum(max(n - span, 0) // wide for n in lengths), "stretches"
        episode = columns["episode"][windows.starts]
        rows = stretches.firsts[:, None] + np.arange(wide)
        assert len(np.unique(rows)) == rows.size, "a window is in two stretches."
        assert (np.ptp(episode[rows], axis=1) == 0).all(), "a stretch crosses."


def check_decoders(names) -> None:
    """At most so many files are open in a thread, and each answers for its own file."""
    with folder_of() as folder:
        for number in range(5):
            images = images_of(9, episode=number * 4)
            names["write_video"](folder / f"{number}.mp4", images, 10)
        decoders, opened = names["Decoders"](2), []
        for number in (0, 1, 0, 2, 0, 3, 4, 0, 0):
            video = decoders(folder / f"{number}.mp4")
            opened.append(video)
            frame = next(names["decoded_from"](video, 0.3))
            grey = frame.to_ndarray(format="rgb24")[4].mean()
            assert round(grey / 32) == number, "frames of another file."
        assert opened[0] is opened[2] is opened[4], "a file that is in use is opened again."
        assert len(decoders.local.held) == 2, f"{len(decoders.local.held)} files are open."
    refusal("no decoder", lambda: names["Decoders"](0))


def check_tolerant(names) -> None:
    """Damaged files are named, up to the bound; the other windows come as they are."""

    class Some(list):
        starts, columns = np.arange(12), {"video": np.arange(12) // 3}
        files = ("a", "b", "c", "d")

        def __getitem__(self, number):
            if self.files[number // 3] in self.bad:
                raise ValueError(f"{self.files[number // 3]} is damaged")
            return number

    windows = Some(range(12))
    for bad, most in (("", 0), ("b", 1), ("bd", 2), ("bd", 1), ("abcd", 3), ("abcd", 9)):
        windows.bad, tolerant = bad, names["Tolerant"](windows, most)

        def read(tolerant=tolerant):
            return [tolerant[number] for number in range(12)]

        if len(bad) > most or len(bad) == 4:
            assert "a" in refusal("too many bad files", read)
            continue
        found = read()
        good = [number for number in range(12) if windows.files[number // 3] not in bad]
        assert sorted(tolerant.bad) == sorted(bad), "other files are named."
        assert set(found) == set(good) and len(tolerant) == 12, "other windows come."
        assert all(found[number] == number for number in good), "a right window is replaced."


def check_sound(names) -> None:
    """Samples are those of their time, of any number of channels; what is not there is refused."""
    import av

    rate, random_numbers = 8_000, np.random.default_rng(0)
    with folder_of() as folder:
        for layout, channels in (("mono", 1), ("stereo", 2)):
            file = folder / f"{layout}.flac"
            samples = random_numbers.integers(-9_999, 9_999, (1, 16_000 * channels)).astype(
                np.int16
            )
            with av.open(str(file), "w") as sound:
                stream = sound.add_stream("flac", rate=rate, layout=layout)
                frame = av.AudioFrame.from_ndarray(samples, format="s16", layout=layout)
                frame.sample_rate = rate
                sound.mux(stream.encode(frame))
                sound.mux(stream.encode())
            right = samples.reshape(-1, channels).T
            for begin, count in ((0, 16_000), (0.5, 1), (1.25, 4_000), (1.999, 8)):
                at, found = round(begin * rate), names["sound_at"](file, begin, count)
                assert np.array_equal(found, right[:, at : at + count]), "other samples."
            for begin, count in ((0, 16_001), (1.9, 4_000), (5, 1)):
                refusal("no sound", lambda b=begin, c=count, f=file: names["sound_at"](f, b, c))


BROKEN = [
    (
        "check_frames",
        "video.seek(at, stream=stream)",
        "video.seek(at + 9**5, stream=stream)",
        "lost",
    ),
    ("check_frames", "yield from stream.decode(None)", "pass", "is lost|not"),
    ("check_frames", "max(int((time - back) / stream.time_base), begin)", "begin + 9**6", "lost"),
    (
        "check_times",
        "np.full(len(times), tolerance, np.float64)",
        "np.full(len(times), 9.)",
        "goes",
    ),
    (
        "check_times",
        "images[place], best[place] = image, far[place]",
        "images[place] = image",
        "nearest",
    ),
    (
        "check_damage",
        'except (av.FFmpegError, IndexError) as error:\n        raise ValueError(f"{file} cannot',
        'except KeyError as error:\n        raise ValueError(f"{file} cannot',
        "raises",
    ),
    (
        "check_windows",
        "self.starts = starts[episode[starts] == episode[starts + span]]",
        "self.starts = starts",
        "too many|cross",
    ),
    ("check_inputs", "~(steps > 0)", "(steps < 0)", "goes through"),
    ("check_inputs", "if len(shapes) > 1:", "if False:", "two sizes"),
    ("check_stream", "[process::processes]", "[process:]", "twice"),
    ("check_stream", "spawn_key=(epoch,)", "spawn_key=(0,)", "one order"),
    ("check_stream", "if step == start or not at:", "if not at:", "raises|others"),
    ("check_ahead", "len(waiting) > ahead", "len(waiting) > 9", "are decoded"),
    ("check_lerobot", "told[begin][at] + ", "", "other|raises"),
    ("check_lerobot", 'np.argsort(rows["index"], kind="stable")', "slice(None)", "follows|raises"),
    ("check_columns", "or lists and len(lengths) > 1", "", "goes through|raises"),
    ("check_columns", "or column.null_count", "", "goes through"),
    ("check_folder", "file.suffix.lower()", "file.suffix", "files"),
    ("check_version", "(time, video, self.starts)", "(video,)", "same version"),
    (
        "check_stretches",
        "self.firsts = fits[episode[fits] == episode[last]]",
        "self.firsts = fits",
        "stretches",
    ),
    ("check_decoders", "held.move_to_end(file)", "pass", "opened again"),
    ("check_decoders", "while len(held) >= self.most:", "while False:", "are open"),
    ("check_tolerant", "self.bad[file] = str(error)", "continue", "named|goes"),
    ("check_tolerant", "if len(self.bad) > self.most:", "if False:", "goes"),
    ("check_sound", "at = round(begin * rate) - (first or 0)", "at = 0", "other samples"),
]
