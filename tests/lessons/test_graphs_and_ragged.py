"""The cells to copy of the lesson on graphs of unequal size, on other graphs and counts."""

import functools
import itertools

import feed_graphs_and_ragged as lesson
import numpy as np
from expecting import refusal, same
from hypothesis import strategies as st
from hypothesis_cases import tried

INDEX = ("int64", "int32", "uint8")


def graphs_of(sizes, index="int64"):
    """A graph for each (nodes, edges): its number is in every node and edge."""
    random = np.random.default_rng(0)
    return [
        {
            "nodes": {"x": np.full((n, 2), number, "float32"), "place": np.arange(n)},
            "edges": np.full(e, number, np.int16),
            "senders": random.integers(0, max(n, 1), e).astype(index),
            "receivers": random.integers(0, max(n, 1), e).astype(index),
            "globals": {"number": number, "two": np.array([number, -number], np.float32)},
        }
        for number, (n, e) in enumerate(sizes)
    ]


@st.composite
def sizes(draw):
    """Numbers of nodes and edges; a graph without nodes has no edges, and one may be a giant."""
    found = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=40))
    if found and draw(st.booleans()):
        found[draw(st.integers(0, len(found) - 1))] = 700, 300
    return [(n, e if n else 0) for n, e in found]


def taken_apart(batch, batch_size):
    """The graphs of a batch, and the padding, with the nodes numbered from 0 in each."""
    parts, node, edge = [], 0, 0
    assert len(batch["n_node"]) == len(batch["n_edge"]) == batch_size + 1, "no padding graph"
    for at, (n, e) in enumerate(zip(batch["n_node"], batch["n_edge"], strict=True)):
        rows = slice(node, node + n), slice(edge, edge + e)
        part = {"nodes": {name: a[rows[0]] for name, a in batch["nodes"].items()}}
        part["edges"] = batch["edges"][rows[1]]
        part |= {name: batch[name][rows[1]] - node for name in ("senders", "receivers")}
        if at < batch_size:
            part["globals"] = {name: a[at] for name, a in batch["globals"].items()}
        parts.append(part)
        node, edge = node + n, edge + e
    assert node == len(batch["nodes"]["x"]) and edge == len(batch["edges"]), "rows of no graph"
    return parts[:-1], parts[-1]


@tried(
    1,
    sizes=sizes(),
    batch_size=st.integers(1, 9),
    processes=st.integers(1, 3),
    seed=st.integers(0, 9),
    growth=st.sampled_from((1.01, 1.25, 2, 9, np.inf)),
    index=st.sampled_from(INDEX),
)
def test_batches(sizes, batch_size, processes, seed, growth, index):
    """Each graph comes once in an epoch as it was, whatever stands beside it."""
    if index == "uint8":
        sizes = [(min(n, 200), e) for n, e in sizes]
    graphs = graphs_of(sizes, index=index)
    options = {"seed": seed, "processes": processes, "growth": growth}
    if len(graphs) < batch_size * processes:
        said = refusal("too few", lambda: lesson.GraphBatches(graphs, batch_size, **options))
        assert f"a batch of {batch_size * processes}" in said, said
        return
    made = [
        lesson.GraphBatches(graphs, batch_size, process=number, **options)
        for number in range(processes)
    ]
    steps, seen, shapes = made[0].steps, [], set()
    for step in range(2 * steps):
        every = [batches[step] for batches in made]
        found = {(len(batch["nodes"]["x"]), len(batch["senders"])) for batch in every}
        assert len(found) == 1, "the processes have batches of several shapes"
        shapes |= found
        for batch in every:
            parts, padding = taken_apart(batch, batch_size)
            for part in parts:
                number = int(part["globals"]["number"])
                seen.append((step // steps, number))
                assert same(part, graphs[number]), "a graph is not as it was"
            assert len(padding["nodes"]["x"]) > 0, "the padding has no node"
            ends = np.concatenate([padding["senders"], padding["receivers"]])
            assert not ends.any(), "an edge of the padding leaves it"
            dtypes = [batch["nodes"]["x"].dtype, batch["edges"].dtype, batch["senders"].dtype]
            assert dtypes == ["float32", "int16", "int32"], "a dtype has changed"
    assert len({*seen}) == len(seen) == 2 * (len(graphs) - made[0].left_out), "lost, or twice"
    known = [*map(tuple, made[0].shapes.tolist())]
    assert shapes <= {*known}, "a shape is not in shapes"
    assert known == sorted(known) and len({*known}) == len(known), "shapes do not grow"


def test_worst():
    """The largest graphs fit together, and nine batches in ten have the smallest shape."""
    random = np.random.default_rng(0)
    counts = [*random.integers(1, 40, 990), *[500] * 10]
    graphs = [{"nodes": np.zeros((n, 1)), "globals": n} for n in counts]
    batches = lesson.GraphBatches(graphs, 10)
    sizes = [len(batches[step]["nodes"]) for step in range(3 * batches.steps)]
    assert np.mean(np.array(sizes) == batches.shapes[0, 0]) > 0.85, "most batches are larger"
    few = lesson.GraphBatches(graphs[:33], 32)
    sizes = [len(few[step]["nodes"]) for step in range(1000)]
    assert np.mean(np.array(sizes) == few.shapes[0, 0]) > 0.85, "most batches are larger"
    batches.order.rows = lambda step: np.arange(990, 1000)
    assert len(batches[0]["nodes"]) == 5001, "the largest graphs do not fit"
    assert batches[0]["n_node"][-1] == 1, "the largest graphs do not fit"
    ends = [np.zeros(e, int) for e in random.permutation(counts)]
    graphs = [
        graph | {"senders": end, "receivers": end} for graph, end in zip(graphs, ends, strict=True)
    ]
    batches = lesson.GraphBatches(graphs, 10)
    sizes = [len(batches[step]["nodes"]) for step in range(3 * batches.steps)]
    assert np.mean(np.array(sizes) == batches.shapes[0, 0]) >= 0.89, "most batches are larger"
    grown = (batches.shapes[1:] + 1) / (batches.shapes[:-1] + 1)
    assert (grown.max(axis=1) < 1.26).all() and (grown.max(axis=1) > 1.2).all(), "wasted shapes"


def test_shapes():
    """The smallest fits nine batches in ten, and hardly more; none is more than needed between."""
    needs = np.random.default_rng(0).integers(500, 1_000, (300, 2))
    for growth, most in ((1.1, [9_000, 2_000]), (2, [2_000, 9_000]), (7, [1_200, 1_300])):
        shapes = lesson.shapes_of(needs, np.array(most), growth)
        fit = (needs <= shapes[0]).all(axis=1).mean()
        assert 0.9 <= fit < 0.92, f"{fit} of the batches have the smallest shape"
        assert shapes[-1].tolist() == most, "the largest is another"
        whole = ((shapes[-1] + 1) / (shapes[0] + 1)).max()
        assert whole ** (1 / (len(shapes) - 1)) <= growth, "shapes grow too fast"
        assert len(shapes) == 2 or whole ** (1 / (len(shapes) - 2)) > growth, "too many shapes"
    almost = lesson.shapes_of(np.full((300, 2), 98), np.array([790, 790]), 2)  # 791 < 99 * 2**3
    assert len(almost) == 4 and almost[0].tolist() == [98, 98], "too many shapes"


def test_order():
    """Another order in each epoch and for each seed, the same from any step and twice."""
    graphs = graphs_of([(n % 7 + 1, n % 5) for n in range(50)])
    order = {}
    for seed, epoch in itertools.product((0, 1), (0, 1)):
        for again in (False, True):
            batches = lesson.GraphBatches(graphs, 5, seed=seed)
            steps = range(epoch * batches.steps, (epoch + 1) * batches.steps)
            steps = reversed(steps) if again else steps
            found = str(sorted((step, *batches[step]["globals"]["number"]) for step in steps))
            assert order.setdefault((seed, epoch), found) == found, "another order, again"
    assert len({*order.values()}) == 4, "two orders are equal"
    own, first = (lesson.GraphBatches(graphs, 5, **seed)[0] for seed in ({}, {"seed": 0}))
    assert same(own, first), "without a seed it is another than 0"


def test_forms():
    """Point sets and sequences have no edges, edges may have no arrays, and a tuple is a pytree."""
    make = lesson.GraphBatches
    points = [{"nodes": np.arange(n) + 10 * n, "globals": n} for n in range(1, 9)]
    batch = make(points, 8)[0]
    assert batch.keys() == {"nodes", "globals", "n_node", "n_edge"}, "other names"
    assert not batch["n_edge"].any(), "edges where there are none"
    whole = np.split(batch["nodes"], np.cumsum(batch["n_node"])[:-1])
    assert all(
        np.array_equal(part, np.arange(n) + 10 * n)
        for part, n in zip(whole, batch["globals"], strict=False)
    ), "points are mixed up"
    bare = [{"nodes": (np.ones(2), np.ones((2, 3))), "senders": np.array([1]),
             "receivers": np.array([0])}] * 3  # fmt: skip
    batch = make(bare, 3)[0]
    assert len(batch["nodes"]) == 2 and batch["senders"][:3].tolist() == [1, 3, 5], "other edges"
    listed = [{"nodes": [*np.full((4, 3), n, "f4")], "globals": [n, 2.5]} for n in range(6)]
    batch = make(listed, 6)[0]
    assert batch["n_node"][:-1].tolist() == [4] * 6, "a list of rows is not an array"
    assert np.array_equal(batch["globals"][:, 0], batch["nodes"][:-1:4, 0]), "another graph's"


def test_refusals():
    """What would be another graph's, or of another kind, is refused by the graph's number."""
    make = lesson.GraphBatches
    for changes, words in (
        ({"senders": np.array([0, 3])}, "an edge ends at 3, of 3 nodes"),
        ({"receivers": np.array([-1, 0])}, "an edge ends at -1"),
        ({"senders": np.array([0.0, 1.0])}, "senders are numbers of nodes, not float32"),
        ({"senders": np.array([0])}, "edges, receivers, senders: expected arrays of one length"),
        ({"edges": np.ones((3, 1))}, "edges, receivers, senders: expected arrays of one length"),
        ({"nodes": np.ones((3, 5))}, "nodes: float32 (5,), in graph 0 float32 (2,)"),
        ({"nodes": np.ones((3, 2), np.float16)}, "nodes: float16"),
        ({"globals": np.array([1, 2])}, "globals: int32 (2,), in graph 0 int32 (1,)"),
        ({"globals": "cup"}, "globals: 'globals': expected an array of numbers"),
        ({"nodes": np.ma.masked_less(np.ones((3, 2)), 2)}, "nodes: 'nodes' has a mask"),
        ({"nodes": {"a": np.ones((3, 2))}}, "nodes: {'a'"),
        ({"edge_index": np.zeros((2, 2), int)}, "edge_index"),
    ):
        right = {
            "nodes": np.ones((3, 2)),
            "edges": np.ones((2, 1)),
            "senders": np.array([0, 1]),
            "receivers": np.array([1, 2]),
            "globals": np.array([1]),
        }
        pair = [right, right | changes]
        said = refusal(words, functools.partial(make, pair, 1))
        assert words in said and "graph 1" in said, said
    lacking = {name: right[name] for name in right if name != "globals"}
    said = refusal("no globals", lambda: make([right, lacking], 1))
    assert "graph 1: globals: None, in graph 0 int32 (1,)" in said, said
    edges = right | {"receivers": None}
    del edges["receivers"]
    assert "not only ['senders']" in refusal("receivers", lambda: make([edges], 1))
    assert "not ndarray" in refusal("no dict", lambda: make([np.ones((3, 2))], 1))
    two = {"nodes": {"a": np.ones(2), "b": np.ones(3)}}
    assert "graph 0" in refusal("two counts", lambda: make([two], 1))
    assert "graph 0" in refusal("no nodes", lambda: make([{"globals": 1}], 1))
    large = {"nodes": np.array([2**40])}
    assert "into int32" in refusal("large numbers", lambda: make([large], 1))
    one = {"nodes": np.ones(1)}
    for growth in (1, float("nan")):
        assert "growth" in refusal("growth", functools.partial(make, [one], 1, growth=growth))
    assert "process=2" in refusal("process", lambda: make([one] * 4, 1, process=2, processes=2))
