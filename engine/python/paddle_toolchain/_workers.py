"""Processes that read the samples of a DataLoader. Tensors come back through shared memory."""
import collections
import contextlib
import glob
import itertools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import traceback
import weakref
from multiprocessing import resource_tracker, shared_memory

from . import _paddle, io

_numbers = itertools.count()
_BATCHES_AHEAD = 2  # of each worker
_SHARED_BYTES = 1 << 14  # smaller tensors are sent through the pipe


class _Shared:
    """A tensor in shared memory, which its reader removes."""

    def __init__(self, name, tensor):
        data = tensor._bytes()
        memory = shared_memory.SharedMemory(name, create=True, size=len(data))
        memory.buf[:len(data)] = data
        self.name, self.size, self.dtype, self.shape = memory.name, len(data), tensor.dtype, tensor.shape
        memory.close()
        resource_tracker.unregister(memory._name, "shared_memory")  # the reader's now

    def take(self):
        memory = shared_memory.SharedMemory(self.name)
        try:
            return _paddle.from_bytes(bytes(memory.buf[:self.size]), self.dtype, self.shape)
        finally:
            memory.close()
            memory.unlink()


def _replaced(value, kind, replace):
    """A batch with each object of the kind replaced."""
    if isinstance(value, kind):
        return replace(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(each, kind, replace) for each in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(each, kind, replace) for each in value)
    if isinstance(value, dict):
        return {key: _replaced(each, kind, replace) for key, each in value.items()}
    return value


class _Over:
    """In place of a batch: the worker has come to the end of an iterable dataset."""


def _work(connection, content, prefix, worker, count):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader's process ends the workers
    prefix = f"{prefix}_{os.getpid()}"
    try:
        _serve(connection, content, prefix, worker, count)
    except (EOFError, OSError):
        pass  # that process has ended
    finally:
        _remove(prefix)


def _read(dataset, task, seed, epoch, worker, streams):
    """The samples of a task: of indices, or the next ones of an iterable dataset. `streams`: by seed and epoch."""
    if not isinstance(dataset, io.IterableDataset):
        return io.read_samples(dataset, task, seed, epoch)
    if (seed, epoch) not in streams:
        streams.clear()
        streams[seed, epoch] = io.SampleStream(dataset, seed, epoch, worker)
    return streams[seed, epoch].batch(*task)


def _serve(connection, content, prefix, worker, count):
    numbers = itertools.count()
    streams = {}

    def share(tensor):
        if tensor.size * 8 < _SHARED_BYTES or tensor.dtype == "string":
            return tensor
        return _Shared(f"{prefix}_{next(numbers)}", tensor)

    failure = None
    try:
        dataset, collate = pickle.loads(content)
        io.set_worker_info(io.WorkerInfo(worker, count, dataset))
    except BaseException as error:
        failure = _failure(error)
    _paddle.set_num_threads(1)
    while (task := connection.recv()) is not None:
        answer = failure
        if failure is None:
            try:
                samples = _read(dataset, *task, worker, streams)
                answer = (True, _replaced(collate(samples), _paddle.Tensor, share) if samples else _Over())
            except BaseException as error:
                answer = _failure(error)
        connection.send(answer)


def _remove(prefix):
    """Removes shared memory without a reader."""
    for path in glob.glob(f"/dev/shm/{prefix}_*"):
        with contextlib.suppress(OSError):
            os.unlink(path)


def _failure(error):
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return False, (error, text)


class Workers:
    """Processes with a dataset; `read` yields batches in their order."""

    def __init__(self, dataset, collate, count):
        context = multiprocessing.get_context("spawn")
        content = pickle.dumps((dataset, collate))
        prefix = f"paddle_{os.getpid()}_{next(_numbers)}"
        self.processes, self.connections = [], []
        for worker in range(count):
            own, other = context.Pipe()
            process = context.Process(target=_work, args=(other, content, prefix, worker, count), daemon=True)
            process.start()
            other.close()
            self.processes.append(process)
            self.connections.append(own)
        self.is_reading = False
        self.end = weakref.finalize(self, _end, self.processes, self.connections, prefix)

    def read(self, tasks, seed, epoch):
        """The batches of tasks, which the workers get in turn. Ends with the tasks, or when all workers are over."""
        if self.is_reading:
            raise RuntimeError("DataLoader: two loops read from one loader with workers at a time")
        self.is_reading = True
        count, tasks = len(self.connections), iter(tasks)
        waiting = [collections.deque() for _ in self.connections]  # numbers of batches, by worker
        done, sent, over = {}, 0, set()
        try:
            for number in itertools.count():
                for task in itertools.islice(tasks, number + _BATCHES_AHEAD * count - sent):
                    self._send(sent % count, (task, seed, epoch))
                    waiting[sent % count].append(sent)
                    sent += 1
                if number == sent:
                    break
                while number not in done:
                    self._receive(waiting, done)
                ok, value = done.pop(number)
                if not ok:
                    error, text = value
                    error.add_note(f"in a worker of DataLoader:\n{text}")
                    raise error
                if isinstance(value, _Over):
                    over.add(number % count)
                    if len(over) == count:
                        self._drain(waiting, done)
                        break
                else:
                    yield _replaced(value, _Shared, _Shared.take)
        except GeneratorExit:  # the rest of the epoch is not read
            self._drain(waiting, done)
            raise
        except BaseException:
            self.end()  # an interrupt may have come between a message and its count
            raise
        finally:
            self.is_reading = False

    def _send(self, worker, task):
        try:
            self.connections[worker].send(task)
        except (BrokenPipeError, OSError):
            self._reject_end(worker)

    def _reject_end(self, worker):
        self.processes[worker].join(1)
        raise RuntimeError(f"DataLoader: worker {worker} has ended with status {self.processes[worker].exitcode}")

    def _receive(self, waiting, done):
        readers = {self.connections[i]: i for i in range(len(waiting)) if waiting[i]}
        for connection in multiprocessing.connection.wait(list(readers)):
            worker = readers[connection]
            try:
                done[waiting[worker].popleft()] = connection.recv()
            except (EOFError, OSError):
                self._reject_end(worker)

    def _drain(self, waiting, done):
        """Takes the batches that are left, whose shared memory would stay."""
        while any(waiting) and all(process.is_alive() for process in self.processes):
            try:
                self._receive(waiting, done)
            except RuntimeError:
                break
        for ok, value in done.values():
            if ok:
                _replaced(value, _Shared, _Shared.take)


def _end(processes, connections, prefix):
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.send(None)
        connection.close()
    for process in processes:
        process.join(2)
        if process.is_alive():
            process.terminate()
    _remove(prefix)
