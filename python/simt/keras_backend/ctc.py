"""Sequences of labels without an alignment: the loss, and decoding on the host."""

from collections import defaultdict

import numpy as np

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend.core import convert_to_numpy, convert_to_tensor


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """The forward algorithm over the labels with blanks between them, in logarithms."""
    target = convert_to_tensor(target).to(C.int64)
    output = convert_to_tensor(output)
    if target.dim() != 2 or output.dim() != 3:
        raise ValueError(
            "Targets must have `(batch_size, max_length)` and output "
            "`(batch_size, max_length, num_classes)`. Received: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
    target_length = convert_to_tensor(target_length).to(C.int64)
    output_length = convert_to_tensor(output_length).to(C.int64)
    batch, most = target.shape
    steps = output.shape[1]
    log_prob = C.log_softmax(output.to(knp.result_dtype(output.dtype, "float32")), -1)
    blank = knp.full_like(target, mask_index)
    labels = C.stack([blank, target], 2).reshape(batch, 2 * most)
    labels = C.cat([labels, blank[:, :1]], 1)
    emit = log_prob.gather(2, labels.unsqueeze(1).expand(batch, steps, 2 * most + 1))
    low = -1e30
    # From label to label over the blank between them, unless they are the same.
    odd = C._arange(2, 2 * most + 1, 1, C.int64) % 2 == 1
    skip = C.logical_and(odd, labels[:, 2:] != labels[:, :-2])
    skip = C.where(skip, 0.0, low).to(emit.dtype)
    wall = knp.full((batch, 1), low, emit.dtype)
    skip = C.cat([wall, wall, skip], 1)
    start = knp.full((batch, 2 * most - 1), low, emit.dtype)
    alpha = C.cat([emit[:, 0, :2], start], 1)
    for t in range(1, steps):
        one = C.cat([wall, alpha[:, :-1]], 1)
        two = C.cat([wall, wall, alpha[:, :-2]], 1) + skip
        top = C.maximum(C.maximum(alpha, one), two).detach()
        reached = C.log(C.exp(alpha - top) + C.exp(one - top) + C.exp(two - top)) + top
        alive = (output_length > t).unsqueeze(1)
        alpha = C.where(alive, reached + emit[:, t], alpha)
    last = (2 * target_length).unsqueeze(1)
    ends = C.cat([alpha.gather(1, last), alpha.gather(1, C.clamp_min(last - 1, 0))], 1)
    ends = C.where(C.cat([last >= 0, last > 0], 1), ends, knp.full_like(ends, low))
    return -C.logsumexp(ends, 1)


def ctc_decode(
    inputs,
    sequence_lengths,
    strategy="greedy",
    beam_width=100,
    top_paths=1,
    merge_repeated=True,
    mask_index=0,
):
    inputs = convert_to_tensor(inputs)
    inputs = inputs.to(knp.result_dtype(inputs.dtype, "float32"))
    lengths = convert_to_numpy(sequence_lengths)
    if mask_index is None:
        mask_index = inputs.shape[-1] - 1
    if strategy == "greedy":
        return _greedy(inputs, lengths, merge_repeated, mask_index)
    if strategy == "beam_search":
        return _beam_search(inputs, lengths, beam_width, top_paths, mask_index)
    raise ValueError(
        f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'."
    )


def _greedy(inputs, lengths, merge_repeated, mask_index):
    x = convert_to_numpy(inputs)
    best = x.argmax(-1)
    decoded = np.full(best.shape, -1, "int32")
    for row, labels in enumerate(best):
        labels = labels[: lengths[row]]
        kept = labels != mask_index
        if merge_repeated:
            kept[1:] &= labels[1:] != labels[:-1]
        labels = labels[kept]
        decoded[row, : len(labels)] = labels
    inside = np.arange(x.shape[1])[None, :] < lengths[:, None]
    score = -np.where(inside, x.max(-1), 0).sum(1)[:, None]
    return convert_to_tensor(decoded[None]), convert_to_tensor(
        score, knp.result_dtype(inputs.dtype, "float32")
    )


def _beam_search(inputs, lengths, beam_width, top_paths, mask_index):
    log_prob = convert_to_numpy(C.log_softmax(inputs, -1).to(C.float64))
    batch, steps, _ = log_prob.shape
    decoded = np.full((top_paths, batch, steps), -1, "int32")
    scores = np.full((batch, top_paths), -np.inf)
    for row in range(batch):
        beam = _beam(log_prob[row, : max(int(lengths[row]), 1)], beam_width, mask_index)
        for i, (path, score) in enumerate(beam[:top_paths]):
            decoded[i, row, : len(path)] = path
            scores[row, i] = score
    return convert_to_tensor(decoded), convert_to_tensor(scores, inputs.dtype)


def _beam(log_prob, width, blank):
    """The likeliest labels with their logarithms of probability, best first. A path has two: of
    all alignments that end in its last label, and in a blank."""
    beam = {(): (-np.inf, 0.0)}
    for step in log_prob:
        grown = defaultdict(lambda: [-np.inf, -np.inf])
        for path, (label, space) in beam.items():
            both = np.logaddexp(label, space)
            for k, score in enumerate(step.tolist()):
                if k == blank:
                    _add(grown[path], 1, both + score)
                    continue
                repeated = bool(path) and path[-1] == k
                if repeated:
                    _add(grown[path], 0, label + score)
                _add(grown[*path, k], 0, (space if repeated else both) + score)
        # Of equals those with smaller labels stay, as in TensorFlow.
        order = [(np.logaddexp(*pair), tuple(-k for k in path)) for path, pair in grown.items()]
        best = sorted(zip(order, grown.items(), strict=True), reverse=True)[:width]
        beam = dict(item for _, item in best)
    return [(path, float(np.logaddexp(*pair))) for path, pair in beam.items()]


def _add(pair, i, score):
    pair[i] = np.logaddexp(pair[i], score)
