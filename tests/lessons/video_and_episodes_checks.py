"""The cells to copy of the lesson on video and episodes, on videos that are not the lesson's."""

import contextlib
import fractions
import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
from copied_cells import refusal, same


def write(file, times, episode=0, size=(64, 64), gop=10, **options):
    """A video of frames that say their number, in rows and columns of black and white."""
    import av

    height, width = size
    options = {"g": str(gop), "crf": "6"} | options
    with av.open(str(file), "w") as out:
        stream = out.add_stream("libx264", rate=30, options=options)
        stream.pix_fmt = "yuv444p" if height % 2 or width % 2 else "yuv420p"
        stream.width, stream.height = width, height
        base = fractions.Fraction(1, 90_000)
        stream.codec_context.time_base = base
        for number, time in enumerate(times):
            pixels = np.full((height, width, 3), 90, np.uint8)
            for row, value in enumerate((episode, number)):
                for bit in range(8):
                    white = 255 * (value >> bit & 1)
                    pixels[8 * row : 8 * row + 8, 8 * bit : 8 * bit + 8] = white
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = round(float(time) / base), base
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def said(frames):
    """Which episode and which number each frame says."""
    bits = frames[..., 4:16:8, 4:64:8, :].mean(axis=-1) > 127
    return (bits * 2 ** np.arange(8)).sum(axis=-1)


VIDEOS = {
    "plain.mp4": {"times": np.arange(50) / 30},
    "b_frames.mp4": {"times": np.arange(50) / 30, "gop": 50, "bf": "4"},
    "open_gop.mp4": {"times": np.arange(50) / 30, "x264-params": "open-gop=1:bframes=3"},
    "variable.mp4": {"times": np.cumsum(np.random.default_rng(0).uniform(0.01, 0.2, 50))},
    "late.mp4": {"times": 5 + np.arange(30) / 10},
    "odd.mp4": {"times": np.arange(20) / 30, "size": (71, 67)},
    "rounded.mkv": {"times": np.arange(50) / 30, "gop": 25},
    "one.mp4": {"times": [0.0]},
}


def check_frames(names) -> None:
    """Each window has its own frames, whatever the rate, the order of coding and the size."""
    with tempfile.TemporaryDirectory() as folder:
        for name, options in VIDEOS.items():
            write(Path(folder, name), **options)
        for episode in names["video_episodes"](folder):
            name = Path(episode["file"]).name
            assert len(episode["times"]) == len(VIDEOS[name]["times"]), f"{name}: a frame is lost."
            for length, every in ((1, 1), (3, 2)):
                windows = names["Windows"]([episode], length, every)
                for number in np.random.default_rng(0).permutation(len(windows))[:12]:
                    frames = windows[number]["frames"]
                    found = said(frames)[:, 1].tolist()
                    expected = [*range(number, number + length * every, every)]
                    assert found == expected, f"{name}: {found} in place of {expected}."
                    assert frames.shape[1:3] == VIDEOS[name].get("size", (64, 64))


def check_times(names) -> None:
    """A time that no frame has is refused, and the nearest frame is taken of two."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/gap.mp4"
        write(file, [0, 0.1, 0.2, 0.9, 1.0])
        with names["Decoders"]().open(file) as opened:
            for time in (0.5, -1.0, 7.0):
                call = names["frames_at"]
                message = refusal(
                    f"the time {time}",
                    lambda call=call, time=time: call(opened, np.array([time]), 0.04),
                )
                assert f"{time:.3f}" in message and "gap.mp4" in message, message
            near = names["frames_at"](opened, np.array([0.12, 0.93]), 0.09)
            assert said(near)[:, 1].tolist() == [1, 3], "it is not the nearest frame."


def write_lerobot(folder, lengths, each=2, fps=20):
    import pyarrow as pa
    import pyarrow.parquet as pq

    camera, listed = "observation.images.wrist", []
    for number, first in enumerate(range(0, len(lengths), each)):
        own = range(first, min(first + each, len(lengths)))
        begins, rows = 0.0, []
        for n in own:
            video = {"chunk_index": 0, "file_index": number, "from_timestamp": begins}
            row = {"episode_index": n, "length": lengths[n]}
            row |= {"data/chunk_index": 0, "data/file_index": number}
            listed.append(row | {f"videos/{camera}/{k}": v for k, v in video.items()})
            for i in range(lengths[n]):
                row = {"episode_index": n, "timestamp": np.float32(i / fps)}
                rows.append(row | {"state": [float(n), float(i)], "grip": float(100 * n + i)})
            begins += lengths[n] / fps
        path = Path(folder, f"v/{camera}/0/{number}.mp4")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, np.arange(len(rows)) / fps, episode=number, gop=7, bf="3")
        path = Path(folder, f"d/0/{number}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path)
    path = Path(folder, "meta/episodes/chunk-000/file-000.parquet")
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(listed), path)
    info = {"codebase_version": "v3.0", "features": {camera: {}}}
    info["data_path"] = "d/{chunk_index}/{file_index}.parquet"
    info["video_path"] = "v/{video_key}/{chunk_index}/{file_index}.mp4"
    Path(folder, "meta/info.json").write_text(json.dumps(info))
    return camera


def check_lerobot(names) -> None:
    """Episodes of unequal length share files: each row has its frame, and none is crossed."""
    lengths = [9, 1, 30, 4, 12]
    with tempfile.TemporaryDirectory() as folder:
        camera = write_lerobot(folder, lengths)
        read = names["lerobot_episodes"]
        episodes = read(folder, camera, ("state", "grip"))
        assert [len(e["times"]) for e in episodes] == lengths, "an episode is lost."
        windows = names["Windows"](episodes, 4)
        assert len(windows) == sum(max(n - 3, 0) for n in lengths), "windows are lost."
        assert windows.short == 1
        place = [n if episode % 2 == 0 else n + lengths[episode - 1]
                 for episode, length in enumerate(lengths) for n in range(length - 3)]  # fmt: skip
        seen = []
        for number, first in enumerate(place):
            window = windows[number]
            episode, numbers = window["state"][:, 0], window["state"][:, 1]
            assert len(set(episode.tolist())) == 1, "a window crosses into the next episode."
            assert np.array_equal(np.diff(numbers), [1, 1, 1]), "rows are missing."
            found = said(window["frames"])
            assert found[:, 1].tolist() == [*range(first, first + 4)], "frames are of other rows."
            assert set(found[:, 0].tolist()) == {int(episode[0]) // 2}, "it is another file."
            assert np.array_equal(window["grip"], 100 * episode + numbers)
            seen.append((int(episode[0]), int(numbers[0])))
        assert len(set(seen)) == len(seen), "a window comes twice."
        refusal("no such camera", lambda: read(folder, "observation.images.top", ("state",)))
        info = Path(folder, "meta/info.json")
        info.write_text(info.read_text().replace("v3.0", "v2.1"))
        assert "v2.1" in refusal("an older version", lambda: read(folder, camera, ("state",)))


class Numbers:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        return {"n": np.int32(number)}


def taken(names, steps, *arguments, **options):
    with contextlib.closing(names["batches"](*arguments, **options)) as stream:
        return [*itertools.islice(stream, steps)]


def check_stream(names) -> None:
    """Each window once in an epoch, on any number of processes; any step can be the first."""
    for count, size, processes in ((60, 7, 1), (61, 5, 3), (12, 12, 1), (9, 1, 4)):
        windows, steps = Numbers(count), count // (size * processes)
        streams = [
            taken(names, 2 * steps + 2, windows, size, 3, process=p, processes=processes)
            for p in range(processes)
        ]
        numbers = np.array([[batch["n"] for batch in stream] for stream in streams])
        assert numbers.shape[2] == size
        for epoch in (numbers[:, :steps], numbers[:, steps : 2 * steps]):
            assert len(np.unique(epoch)) == epoch.size, "a window comes twice in an epoch."
        orders = numbers[:, :steps], numbers[:, steps : 2 * steps]
        assert not np.array_equal(*orders), "two epochs have the same order."
        [whole] = [taken(names, steps, windows, size * processes, 3)]
        for step, batch in enumerate(whole):
            together = np.sort(numbers[:, step].ravel())
            assert np.array_equal(np.sort(batch["n"]), together), "processes change the batches."
        for start in range(2 * steps):
            options = {"start": start, "process": processes - 1, "processes": processes}
            [found] = taken(names, 1, windows, size, 3, **options)
            assert same(found, streams[-1][start]), f"from step {start} others come."
    given = {"batch_size": 8, "seed": 0}
    for name, values in {
        "batch_size": (61, 0, -1),
        "processes": (8, 0),
        "process": (1, -1),
        "seed": (-1,),
        "start": (-1,),
        "threads": (0,),
    }.items():
        for value in values:
            wrong = given | {name: value}
            message = refusal(f"{name}={value}", lambda w=wrong: names["batches"](Numbers(60), **w))
            assert f"{name}={value}" in message, message


def check_damage(names) -> None:
    """A truncated file, one with damaged bytes, and one that is no video are named."""
    import av

    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "whole.mp4")
        write(whole, np.arange(60) / 30)
        write(Path(folder, "whole.mkv"), np.arange(60) / 30)
        [episode] = [e for e in names["video_episodes"](folder) if e["file"] == str(whole)]
        data, bad = whole.read_bytes(), Path(folder, "bad")
        bad.mkdir()
        (bad / "cut.mp4").write_bytes(data[: len(data) // 2])
        mkv = Path(folder, "whole.mkv").read_bytes()
        (bad / "cut.mkv").write_bytes(mkv[: len(mkv) // 2])
        (bad / "text.mp4").write_text("no video")
        (bad / "empty.mp4").write_bytes(b"")
        at = data.index(b"mdat")
        size = int.from_bytes(data[at - 4 : at], "big")
        for number in range(8):
            spoilt = bytearray(data)
            first = at + 1_000 + (size - 1_100) * number // 8
            for place in range(first, first + 30):
                spoilt[place] ^= 0x5A
            (bad / f"spoilt{number}.mp4").write_bytes(spoilt)
        level = av.logging.get_level()
        av.logging.set_level(None)
        try:
            for file in sorted(bad.iterdir()):
                windows = names["Windows"]([episode | {"file": str(file)}], 2)
                message = refusal(
                    file.name, lambda windows=windows: [windows[n] for n in range(len(windows))]
                )
                assert file.name in message, f"{file.name} is not named: {message}"
        finally:
            av.logging.set_level(level)


def check_sizes(names) -> None:
    """Videos of two sizes are refused in a sentence; of one size, they are one batch."""
    with tempfile.TemporaryDirectory() as folder:
        for name, size in {"a": (64, 64), "b": (64, 64), "c": (66, 64)}.items():
            write(Path(folder, f"{name}.mp4"), np.arange(8) / 30, size=size)
        episodes = names["video_episodes"](folder)
        windows = names["Windows"](episodes[:2], 2)
        [batch] = taken(names, 1, windows, 14)
        assert batch["frames"].shape == (14, 2, 64, 64, 3)
        windows = names["Windows"](episodes, 2)
        said = refusal("two sizes", lambda: taken(names, 1, windows, 21))
        assert "shapes" in said, said


def check_decoders(names) -> None:
    """No more than the limit are kept open, and one video has one decoder for each thread."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(6):
            write(Path(folder, f"{number}.mp4"), np.arange(12) / 30, episode=number)
        for limit in (0, 2):
            episodes = names["video_episodes"](folder)
            windows = names["Windows"](episodes, 2, limit=limit)
            with contextlib.closing(names["batches"](windows, 6, threads=3)) as stream:
                for batch in itertools.islice(stream, 20):
                    found = said(batch["frames"])
                    assert np.array_equal(found[:, 0, 0], batch["episode"]), "of another file."
                    assert np.array_equal(found[:, 0, 1], batch["first"]), "of another time."
            kept = len(windows.decoders.idle)
            assert kept <= limit, f"{kept} videos are kept open, not {limit}."


BROKEN = [
    ("check_sizes", "return np.stack(arrays)", "return np.concatenate(arrays)", "raises"),
    ("check_sizes", "for array in arrays}) > 1", "for array in arrays}) > 9", "the same shape"),
    (
        "check_frames",
        "stream=stream, backward=True",
        "stream=stream, backward=False",
        "no frame|raises",
    ),
    (
        "check_frames",
        "sorted(packet.pts for packet in packets)",
        "[packet.pts for packet in packets]",
        "no frame at",
    ),
    (
        "check_frames",
        "first = last - (self.length - 1) * self.every",
        "first = last - self.length + 1",
        "in place of",
    ),
    ("check_times", "(gaps < seen) & (gaps <= tolerance)", "gaps < seen", "goes through|raises"),
    ("check_times", "(gaps < seen) & (gaps <= tolerance)", "gaps <= tolerance", "nearest"),
    ("check_lerobot", "begins + table", "table", "other rows|raises"),
    ("check_lerobot", 'max(len(e["times"]) - span, 0)', 'len(e["times"])', "windows are lost"),
    ("check_lerobot", 'startswith("v3")', 'startswith("v")', "older version: goes through"),
    ("check_stream", "spawn_key=(epoch,)", "spawn_key=(0,)", "the same order"),
    ("check_stream", "[process::processes]", "[:batch_size]", "twice"),
    ("check_stream", "start % steps if", "0 if", "others come"),
    ("check_stream", "seed, start, threads - 1) < 0", "seed, threads - 1) < 0", "goes through"),
    ("check_damage", "if frame.is_corrupt:", "if False:", r"spoilt\d.mp4: goes through"),
    ("check_damage", "isinstance(error, av.FFmpegError)", "False", "raises|is not named"),
    ("check_decoders", "len(self.idle) - self.limit", "len(self.idle) - 99", "are kept open"),
]
