"""Data for eager programs: the datasets of configs, or your own."""
import contextlib
import itertools
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


class IterableDataset(Dataset):
    """A dataset that has `__iter__` only, such as a stream. In a loader with workers each of them goes through it:
    `get_worker_info` says which one this is, to give a part of the samples."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}.__iter__")

    def __getitem__(self, index):
        raise TypeError(f"{type(self).__name__} has no __getitem__")

    def __len__(self):
        raise TypeError(f"{type(self).__name__} has no length")


class WorkerInfo:
    """A worker of a loader: its number, the number of workers, and its copy of the dataset."""

    def __init__(self, id, num_workers, dataset):
        self.id, self.num_workers, self.dataset = id, num_workers, dataset


_worker_info = None


def get_worker_info():
    """In a worker of a loader, which one it is; None elsewhere."""
    return _worker_info


def set_worker_info(info):
    """Sets what `get_worker_info` gives."""
    global _worker_info
    _worker_info = info


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


class BatchSampler:
    """The indices of each batch of a dataset, whose order depends on `seed` and the number of the epoch."""

    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, seed=0):
        if batch_size < 1:
            raise ValueError(f"{type(self).__name__}: batch_size must be at least 1, not {batch_size}")
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last, self.seed, self.epoch = drop_last, seed, 0

    def set_epoch(self, epoch):
        """Sets the number of the epoch."""
        self.epoch = epoch

    def _order(self):
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
        return order

    def __iter__(self):
        order = self._order()
        for batch in range(self._count(len(order))):
            yield order[batch * self.batch_size:(batch + 1) * self.batch_size]

    def _count(self, samples):
        full, rest = divmod(samples, self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)

    def __len__(self):
        return self._count(len(self.dataset))


class DistributedBatchSampler(BatchSampler):
    """The share of a rank: every `num_replicas`-th sample. All ranks get as many, so some of the first samples are read
    twice where they do not divide. By default the ranks of the run that `distributed.init_parallel_env` has joined."""

    def __init__(self, dataset, batch_size=1, num_replicas=None, rank=None, shuffle=False, drop_last=False, seed=0):
        from . import distributed

        super().__init__(dataset, batch_size, shuffle, drop_last, seed)
        self.nranks = distributed.get_world_size() if num_replicas is None else num_replicas
        self.local_rank = distributed.get_rank() if rank is None else rank
        if not 0 <= self.local_rank < self.nranks:
            raise ValueError(f"DistributedBatchSampler: rank {self.local_rank} is not below {self.nranks}")

    def _order(self):
        order = super()._order()
        most = -(-len(order) // self.nranks) * self.nranks
        while order and len(order) < most:
            order += order[:most - len(order)]
        return order[self.local_rank::self.nranks]

    def __len__(self):
        return self._count(-(-len(self.dataset) // self.nranks))


class DataLoader:
    """Batches of a dataset. The order of an epoch depends on `seed` and the number of the epoch.

    With `num_workers` as many processes read the samples, which are started anew (spawn): the dataset is pickled for
    them, and a program that is run as a script needs `if __name__ == "__main__"`. The random numbers of `random` and of
    this package that a sample draws depend on the seed, the epoch and its index, so batches are the same for any number
    of workers. Of an `IterableDataset` the batches of the workers take turns. A `batch_sampler`, which iterates over
    lists of indices, replaces the order and the size of batches.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, collate_fn=None, seed=0, num_workers=0,
                 batch_sampler=None):
        if batch_size < 1:
            raise ValueError(f"DataLoader: batch_size must be at least 1, not {batch_size}")
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last or isinstance(dataset, IterableDataset)):
            raise ValueError("DataLoader: a batch_sampler replaces batch_size, shuffle and drop_last, and needs a dataset "
                             "with indices")
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers must not be negative, found {num_workers}")
        if shuffle and isinstance(dataset, IterableDataset):
            raise ValueError("DataLoader: an IterableDataset cannot be shuffled by the loader")
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last, self.seed, self.epoch = drop_last, seed, 0
        self.collate_fn = collate_fn or default_collate
        self.num_workers, self._workers = num_workers, None
        self._has_sampler = batch_sampler is not None
        self.batch_sampler = batch_sampler or BatchSampler(dataset, batch_size, shuffle, drop_last, seed)

    def __len__(self):
        return len(self.batch_sampler)

    def _batches(self, epoch):
        """The indices of each batch."""
        if not self._has_sampler:
            self.batch_sampler.set_epoch(epoch)
        return list(self.batch_sampler)

    def _read(self, epoch):
        """The samples of each batch, in this process."""
        if isinstance(self.dataset, IterableDataset):
            stream = SampleStream(self.dataset, self.seed, epoch)
            while samples := stream.batch(self.batch_size, self.drop_last):
                yield samples
            return
        for chosen in self._batches(epoch):
            yield read_samples(self.dataset, chosen, self.seed, epoch)

    def __iter__(self):
        epoch = self.epoch
        self.epoch += 1
        if self.num_workers == 0:
            for samples in self._read(epoch):
                yield self.collate_fn(samples)
            return
        if self._workers is None or not self._workers.end.alive:
            from ._workers import Workers

            self._workers = Workers(self.dataset, self.collate_fn, self.num_workers)
        if isinstance(self.dataset, IterableDataset):
            tasks = itertools.repeat((self.batch_size, self.drop_last))
        else:
            tasks = self._batches(epoch)
        yield from self._workers.read(tasks, self.seed, epoch)


def _states():
    return random.getstate(), _paddle.get_rng_state()


def _set_states(states):
    random.setstate(states[0])
    _paddle.set_rng_state(states[1])


@contextlib.contextmanager
def _keeping_states():
    """The states of the process's random numbers are, after the scope, what they were before."""
    before = _states()
    try:
        yield
    finally:
        _set_states(before)


def _begin_numbers(name):
    """Begins the random numbers that belong to a name."""
    source = random.Random(name)
    _set_states((source.getstate(), (source.getrandbits(63), 0)))


def read_samples(dataset, indices, seed, epoch):
    """Samples of a dataset, each with random numbers of its own."""
    out = []
    with _keeping_states():
        for index in indices:
            _begin_numbers(f"{seed}/{epoch}/{index}")
            out.append(dataset[index])
    return out


class SampleStream:
    """The samples of an iterable dataset in one epoch, with random numbers of their own."""

    def __init__(self, dataset, seed, epoch, worker=0):
        with _keeping_states():
            _begin_numbers(f"{seed}/{epoch}/worker {worker}")
            self._samples = iter(dataset)
            self._states = _states()

    def batch(self, size, drop_last):
        """The next samples; none at the end."""
        with _keeping_states():
            _set_states(self._states)
            try:
                samples = list(itertools.islice(self._samples, size))
            finally:
                self._states = _states()
        return [] if drop_last and len(samples) < size else samples
