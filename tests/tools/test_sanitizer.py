"""Each mask of nbval_sanitize.cfg touches what it must, and nothing else."""

import re

import pytest

from tools.lesson import lessons

LIBRARIES = (
    "jax torch torchvision numpy tensorflow tensorflow_datasets grain orbax datasets pyarrow"
)
# For each rule, by its replacement: what it makes of samples, and samples that it must not touch.
SAMPLES = {
    " <time>": (
        {
            "epoch 0: 2.4 s, test": "epoch 0: <time>, test",
            "took   3 s": "took <time>",
            "took 1,234.5 ms": "took <time>",
            "80 µs": " <time>",
            "a call costs 15 ns.": "a call costs <time>.",
        },
        ["3 steps", "2 sizes", "1.2.3 s", "v2 s", "epoch 0", "12 minutes", "4 ms_"],
    ),
    " <throughput>": (
        {
            "tuned  860,000 images/s": "tuned <throughput>",
            "1.2 GB/s over the bus": " <throughput> over the bus",
            "33 batches/s": " <throughput>",
            "read  1,250,000 tokens/s": "read <throughput>",
            "70.5 rows/s from disk": " <throughput> from disk",
            "2 workers:  1,090 photographs/s": "2 workers: <throughput>",
        },
        ["860,000 images", "47 MB", "468 batches of 128", "2 images/step", "v2 rows/s", "tokens/s"],
    ),
    " <memory> resident": (
        {
            "after 10 epochs:  1,412.5 MB resident": "after 10 epochs: <memory> resident",
            "1.2 GB resident, flat": " <memory> resident, flat",
        },
        ["47 MB", "47 MB, resident on the device", "412 bytes resident", "412 MB residential"],
    ),
    " <ratio> times (measured)": (
        {"faster:  3.4 times (measured).": "faster: <ratio> times (measured)."},
        ["3.4 times", "times (measured)", "3.4 times (computed)"],
    ),
    " <number> cores (measured)": (
        {"needs  1,200.5 cores (measured).": "needs <number> cores (measured)."},
        ["2 cores", "cores (measured)", "4.9 cores (computed)", "v2 cores (measured)"],
    ),
    r"\1 <percent>": (
        {
            "test accuracy  97.83%": "test accuracy <percent>",
            "precision 18.6%, by chance 2.6%": "precision <percent>, by chance 2.6%",
        },
        ["97.83%", "accuracy 97", "50.00% of the batch", "accuracy of 10%"],
    ),
    " <loss>": (
        {
            "step 99   5.52 nats": "step 99 <loss>",
            "from 7.62 nats to 5.50 nats.": "from <loss> to <loss>.",
        },
        ["3 nats", "5.52", "5.52 bits", "v5.52 nats", "loss 5.52", "5.52 natsu"],
    ),
    "training loss <loss>": (
        {"epoch 0: training loss 0.172, test": "epoch 0: training loss <loss>, test"},
        ["loss 0.172", "training loss 3", "the training loss of 0.172"],
    ),
    r"\1 [<time>]": (
        {
            "100%|█| 468/468 [00:05<00:00, 85.81 steps/s]": "100%|█| 468/468 [<time>]",
            "468/468 [01:05<00:00,  1.25s/ steps]   ": "468/468 [<time>]",
            "9/9 [01:05<00:00,  1.25s/ steps, loss=2.3e-05]": "9/9 [<time>]",
        },
        [
            "468/468",
            "468/468 [done]",
            "1/2 [00:01<00:01, 3 steps/s]",
            "468 [00:05<00:00, 8.1 steps/s]",
            "9/9 [00:05<00:00, 8.1 steps/s, rows=9]",
        ],
    ),
    r"\1 <version>": (
        {f"{name}   2.15.0+cu132": f"{name} <version>" for name in LIBRARIES.split()}
        | {"cupy 14.0.1": "cupy <version>", "tokenizers 0.23.3": "tokenizers <version>"},
        ["jax (128, 28, 28) uint8", "torch 2 tensors", "scipy 1.2.3", "datasets 2 of 3 read"],
    ),
    "device <name>": (
        {"device       cpu": "device <name>", "device       NVIDIA H200": "device <name>"},
        ["the device holds 2 arrays", "devices 8", "device"],
    ),
    r"Wrote \1": (
        {
            "Writing torch_jpegs.py": "Wrote torch_jpegs.py",
            "Overwriting torch_jpegs.py": "Wrote torch_jpegs.py",
        },
        ["Writing 2 files", "Overwriting data/x.json", "Writing a.py failed", "Wrote 1 line"],
    ),
}
RULES = lessons.masks()


def sanitize(text, rules):
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def test_nbval_reads_every_rule_and_each_has_samples():
    lines = lessons.SANITIZER.read_text().splitlines()
    for start in ("regex:", "replace:"):
        assert len(RULES) == sum(line.startswith(start) for line in lines)
    assert [replacement for _, replacement in RULES] == list(SAMPLES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule[1].strip())
def test_rule_masks_what_it_must_and_nothing_else(rule):
    masked, untouched = SAMPLES[rule[1]]
    for sample, expected in masked.items():
        assert sanitize(sample, [rule]) == expected
    for sample in untouched:
        assert sanitize(sample, [rule]) == sample


def test_no_rule_touches_another_rules_mask():
    for masked, _ in SAMPLES.values():
        for expected in masked.values():
            assert sanitize(expected, RULES) == expected
