"""Metrics of `Model.fit` and `evaluate`: `update` with outputs and labels of batches, `accumulate` gives the value."""
from . import _paddle


class Metric:
    """A metric has a `name` and these three methods."""

    name = "metric"

    def reset(self):
        """Forgets all batches."""
        raise NotImplementedError(f"{type(self).__name__}.reset")

    def update(self, outputs, labels):
        """Counts a batch."""
        raise NotImplementedError(f"{type(self).__name__}.update")

    def accumulate(self):
        """The value for all batches since `reset`."""
        raise NotImplementedError(f"{type(self).__name__}.accumulate")


class Accuracy(Metric):
    """The share of samples whose class is among the `topk` highest outputs."""

    def __init__(self, topk=1, name="accuracy"):
        if topk < 1:
            raise ValueError(f"Accuracy: topk must be at least 1, not {topk}")
        self.topk, self.name = topk, name
        self.reset()

    def reset(self):
        self.right = self.count = 0

    def update(self, outputs, labels):
        labels = labels.reshape([-1, 1])
        best = _paddle.function("topk")(outputs.detach(), self.topk)[1]
        self.right += int((best == labels.astype(best.dtype)).any(axis=-1).astype("int64").sum())
        self.count += labels.shape[0]

    def accumulate(self):
        return self.right / max(self.count, 1)


class _Confusion(Metric):
    """Counts of a binary classifier, whose outputs are probabilities of class 1."""

    def __init__(self, name=None, threshold=0.5):
        self.name, self.threshold = name or type(self).__name__.lower(), threshold
        self.reset()

    def reset(self):
        self.true_positive = self.false_positive = self.false_negative = 0

    def update(self, outputs, labels):
        found = outputs.detach().reshape([-1]) > self.threshold
        wanted = labels.reshape([-1]).astype("bool")
        self.true_positive += int((found & wanted).astype("int64").sum())
        self.false_positive += int((found & wanted.logical_not()).astype("int64").sum())
        self.false_negative += int((found.logical_not() & wanted).astype("int64").sum())


class Precision(_Confusion):
    """The share of the samples found that are of class 1."""

    def accumulate(self):
        return self.true_positive / max(self.true_positive + self.false_positive, 1)


class Recall(_Confusion):
    """The share of the samples of class 1 that are found."""

    def accumulate(self):
        return self.true_positive / max(self.true_positive + self.false_negative, 1)
