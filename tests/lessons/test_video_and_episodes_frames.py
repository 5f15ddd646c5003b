"""What a reader copies from the lesson on video and episodes: frames of any video, by time."""

import random
from fractions import Fraction

import feed_video_and_episodes as lesson
import feed_video_and_episodes_in_depth as depth
import numpy as np
from expecting import refusal
from videos_made import folder_of, images_of, numbers

OPEN_GOP = {"x264-params": "open-gop=1:scenecut=0"}


VARIABLE = np.random.default_rng(0).integers(5, 200, 60).cumsum() / 1_000  # seconds


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
