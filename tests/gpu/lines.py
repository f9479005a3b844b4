"""Training lines of the gpu suite: configs of the project with random data, in two sizes."""


def random_data(size, *fields):
    return f"data.train={{kind: random, size: {size}, fields: [{', '.join(fields)}]}}"


def tokens(name, length, high):
    return f"{{name: {name}, dtype: int64, shape: [{length}], low: 0, high: {high}}}"


LABEL = "{name: label, dtype: int64, low: 0, high: 2}"

# Small enough for the CPU: 20 steps are compared with the CPU's losses.
COMPARED = {
    "lenet": ["configs/bench/lenet.yaml", "data.batch_size=8"],
    "gpt": ["configs/bench/gpt2_124m.yaml", "data.batch_size=4",
            "params={layers: 2, heads: 2, width: 32, vocab_size: 65, positions: 64}",
            random_data(16, tokens("tokens", 32, 65), tokens("targets", 32, 65))],
    "gpt_bfloat16": ["configs/bench/gpt2_124m.yaml", "data.batch_size=4", "precision=bfloat16",
                     "params={layers: 2, heads: 2, width: 32, vocab_size: 65, positions: 64}",
                     random_data(16, tokens("tokens", 32, 65), tokens("targets", 32, 65))],
    "lstm": ["configs/bench/lstm_lm.yaml", "params.vocab_size=60", "params.width=16", "data.batch_size=4",
             random_data(16, tokens("tokens", 12, 60), tokens("targets", 12, 60))],
    "deepfm": ["configs/bench/deepfm.yaml", "params.rows=300", "data.batch_size=16",
               random_data(64, "{name: sparse, dtype: int64, shape: [26], low: 0, high: 300}",
                           "{name: dense, shape: [13]}", "{name: label, low: 0, high: 1}")],
    "bert": ["configs/bench/bert_base.yaml", "data.batch_size=4",
             "params={layers: 2, heads: 2, width: 32, vocab_size: 50, positions: 16, classes: 2}",
             random_data(16, tokens("tokens", 16, 50), LABEL)],
}

# The largest relative difference of a loss from the CPU's.
TOLERANCE = {"gpt_bfloat16": 5e-2}
DEFAULT_TOLERANCE = 1e-4

# Lines of full size, with the samples (or tokens) of a sample, and the steps that are timed.
MEASURED = {
    "gpt2_124m": (["configs/bench/gpt2_124m.yaml", "data.batch_size=32", "precision=bfloat16",
                   random_data(64, tokens("tokens", 1024, 50304), tokens("targets", 1024, 50304))],
                  1024, "tokens", 20),
    "gpt2_124m_float32": (["configs/bench/gpt2_124m.yaml", "data.batch_size=8",
                           random_data(64, tokens("tokens", 1024, 50304), tokens("targets", 1024, 50304))],
                          1024, "tokens", 10),
    "resnet50": (["configs/bench/resnet50.yaml", "data.batch_size=128",
                  random_data(128, "{name: image, shape: [3, 224, 224]}",
                              "{name: label, dtype: int64, low: 0, high: 1000}")], 1, "images", 20),
    "lenet": (["configs/bench/lenet.yaml"], 1, "images", 300),
    "bert_base": (["configs/bench/bert_base.yaml", "data.batch_size=32"], 1, "sequences", 20),
}

# The same with small sizes, for the rehearsal on stand-ins.
REHEARSED = {name: (COMPARED[small], unit, what, 3)
             for name, small, unit, what in (("gpt2_124m", "gpt_bfloat16", 32, "tokens"),
                                             ("lenet", "lenet", 1, "images"))}
