"""Further programs as those of control_flow_programs.py, to which they are added: state, training, exceptions, contexts and
decoding."""
import contextlib

from control_flow_programs import A, B, C, PROGRAMS, Module, adamw, bfloat16, cast, clear, dropout, leaf, lib, program, zeros


# --- state and training ---


class Running(Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", zeros(1))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean()
        return x - self.mean if x.sum() > 0 else x


PROGRAMS.append((Running(), (A, B, C)))


@program()
def seeded_dropout(x):
    y = dropout(x, 0.5, training=False)
    return y if x.sum() > 0 else y * 2


class Step(Module):
    """A whole step of training."""

    accumulate = 1

    def __init__(self):
        super().__init__()
        self.weight = leaf([0.5, -0.5, 1.0])
        self.optimizer = adamw(self.parameters())

    def forward(self, x):
        for i in range(self.accumulate):
            loss = ((x * (i + 1) * self.weight).sum() - 1) ** 2
            (loss / self.accumulate).backward()
        self.optimizer.step()
        clear(self.optimizer)
        return loss.detach() * 2 if loss > 1 else loss.detach()


class Accumulated(Step):
    accumulate = 4


PROGRAMS += [(Step(), (A, B, C)), (Accumulated(), (A, B, C))]


@program()
def mixed_precision(x):
    with bfloat16():
        y = x.reshape([1, 3]) @ x.reshape([3, 1])
    return cast(y, "float32").sum() if x.sum() > 0 else x.sum()


class Rate(Module):
    """A rate that is read from an attribute."""

    def __init__(self):
        super().__init__()
        self.weight, self.rate = leaf([1.0, 1.0, 1.0]), 0.5

    def forward(self, x):
        y = x * self.weight * self.rate
        return y if y.sum() > 0 else -y


PROGRAMS.append((Rate(), (A, B, C)))


# --- exceptions and contexts ---


@program()
def try_finally(x):
    try:
        y = x * 2 if x.sum() > 0 else x
    finally:
        x = x + 1
    return y + x


@contextlib.contextmanager
def shifted(values):
    values.append(1)
    yield values
    values.append(2)


@program()
def own_context(x):
    with shifted([]) as found:
        x = x * 2 if x.sum() > 0 else x
    return x + len(found)


@program(breaks="print() is called")
def prints_a_value(x):
    if x.sum() > 0:
        x = x * 2
    print(end="")
    return x + 1


# --- like libraries ---

TABLE = [[0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [3.0, 0.5, 0.0]]


@program([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
def greedy_decoding(x):
    table = lib.stack([x * 0 + x.max() * value for value in (TABLE[0][1], TABLE[1][2], TABLE[2][0])])
    score, steps = zeros(1), 0
    state = x
    while steps < 5:
        state = (table * state.reshape([3, 1])).sum(0) + state
        score = score + state.max()
        if state.sum() > 40:
            break
        steps += 1
    return score


@program([5.0, 1.0, 4.0], [0.1, 0.2, 0.3])
def beam_step(x):
    scores, indices = lib.topk(x, 2)
    return x[indices] + scores if scores.sum() > 1 else scores
