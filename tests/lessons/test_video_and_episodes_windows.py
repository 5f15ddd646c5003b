"""What a reader copies from the lesson on video and episodes: windows on any tables, folders."""

import contextlib
import itertools
import json

import feed_video_and_episodes as lesson
import feed_video_and_episodes_in_depth as depth
import numpy as np
from expecting import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried
from videos_made import folder_of, images_of, numbers

FILES = [f"{number}.mp4" for number in range(99)]


def taken(batches, steps, *arguments, **options):
    with contextlib.closing(batches(*arguments, **options)) as stream:
        return list(itertools.islice(stream, steps))


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
