"""Data for eager programs: the datasets of configs, or your own."""
import os
import random

from . import _paddle


def open(config, part="train", overrides=()):
    """The batches of a config's data as dicts of tensors; each `for` goes through one epoch.

    They are those that training by the config reads: shuffled, transformed and batched as it says.
    """
    return _paddle.Data(os.fspath(config), part, overrides)


class Dataset:
    """A dataset has `__getitem__` and `__len__`."""

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__}.__getitem__")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}.__len__")


class TensorDataset(Dataset):
    """Samples are slices of tensors along their first axis."""

    def __init__(self, tensors):
        self.tensors = list(tensors)
        if len({len(t) for t in self.tensors}) != 1:
            raise ValueError("TensorDataset: tensors of one length are expected")

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return len(self.tensors[0])


def default_collate(samples):
    """Samples as one batch: tensors and numbers are stacked, tuples and dicts item by item."""
    first = samples[0]
    if isinstance(first, (tuple, list)):
        return [default_collate(list(items)) for items in zip(*samples)]
    if isinstance(first, dict):
        return {name: default_collate([sample[name] for sample in samples]) for name in first}
    if isinstance(first, (int, float)):
        return _paddle.to_tensor(list(samples))
    tensors = [x if isinstance(x, _paddle.Tensor) else _paddle.to_tensor(x) for x in samples]
    return _paddle.function("stack")(tensors)


class DataLoader:
    """Batches of a dataset. The order of an epoch depends on `seed` and the number of the epoch.

    With `num_workers` as many processes read the samples, which are started anew (spawn): the dataset is pickled for
    them, and a program that is run as a script needs `if __name__ == "__main__"`. The random numbers of `random` and of
    this package that a sample draws depend on the seed, the epoch and its index, so batches are the same for any number
    of workers.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, collate_fn=None, seed=0, num_workers=0):
        if batch_size < 1:
            raise ValueError(f"DataLoader: batch_size must be at least 1, not {batch_size}")
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers must not be negative, found {num_workers}")
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last, self.seed, self.epoch = drop_last, seed, 0
        self.collate_fn = collate_fn or default_collate
        self.num_workers, self._workers = num_workers, None

    def __len__(self):
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)

    def _batches(self):
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
        self.epoch += 1
        return [order[batch * self.batch_size:(batch + 1) * self.batch_size] for batch in range(len(self))]

    def __iter__(self):
        epoch, batches = self.epoch, self._batches()
        if self.num_workers == 0:
            for chosen in batches:
                yield self.collate_fn(read_samples(self.dataset, chosen, self.seed, epoch))
            return
        if self._workers is None or not self._workers.end.alive:
            from ._workers import Workers

            self._workers = Workers(self.dataset, self.collate_fn, self.num_workers)
        yield from self._workers.read(batches, self.seed, epoch)


def read_samples(dataset, indices, seed, epoch):
    """Samples of a dataset, each with random numbers of its own; the states of the process stay as they are."""
    before, own = random.getstate(), _paddle.get_rng_state()
    try:
        out = []
        for index in indices:
            source = random.Random(f"{seed}/{epoch}/{index}")
            random.setstate(source.getstate())
            _paddle.set_rng_state((source.getrandbits(63), 0))
            out.append(dataset[index])
        return out
    finally:
        random.setstate(before)
        _paddle.set_rng_state(own)
