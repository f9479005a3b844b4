"""Processes that read the samples of a DataLoader. Tensors come back through shared memory."""
import atexit
import collections
import multiprocessing
import multiprocessing.connection
import pickle
import signal
import traceback
import weakref
from multiprocessing import resource_tracker, shared_memory

from . import _paddle, io

_BATCHES_AHEAD = 2  # of each worker
_SHARED_BYTES = 1 << 14  # smaller tensors are sent through the pipe


class _Shared:
    """A tensor in shared memory, which its reader removes."""

    def __init__(self, tensor):
        data = tensor._bytes()
        memory = shared_memory.SharedMemory(create=True, size=len(data))
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


def _share(tensor):
    size = tensor.size
    return _Shared(tensor) if size * 8 > _SHARED_BYTES and not tensor.dtype == "string" else tensor


def _work(connection, content):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader's process ends the workers
    try:
        dataset, collate = pickle.loads(content)
        ready = None
    except BaseException as error:
        dataset, collate, ready = None, None, _failure(error)
    _paddle.set_num_threads(1)
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        if task is None:
            return
        if ready is not None:
            connection.send(ready)
            continue
        try:
            indices, seed, epoch = task
            batch = collate(io.read_samples(dataset, indices, seed, epoch))
            connection.send((True, _replaced(batch, _paddle.Tensor, _share)))
        except BaseException as error:
            connection.send(_failure(error))


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
        self.processes, self.connections = [], []
        for _ in range(count):
            own, other = context.Pipe()
            process = context.Process(target=_work, args=(other, content), daemon=True)
            process.start()
            other.close()
            self.processes.append(process)
            self.connections.append(own)
        self.is_reading = False
        end = weakref.finalize(self, _end, self.processes, self.connections)
        atexit.register(end)

    def read(self, batches, seed, epoch):
        """The batches of lists of indices."""
        if self.is_reading:
            raise RuntimeError("DataLoader: two loops read from one loader with workers at a time")
        self.is_reading = True
        waiting = [collections.deque() for _ in self.connections]  # numbers of batches, by worker
        done, sent = {}, 0
        try:
            for number in range(len(batches)):
                while number not in done:
                    while sent < len(batches) and sent < number + _BATCHES_AHEAD * len(self.connections):
                        worker = sent % len(self.connections)
                        self._send(worker, (batches[sent], seed, epoch))
                        waiting[worker].append(sent)
                        sent += 1
                    self._receive(waiting, done)
                ok, value = done.pop(number)
                if not ok:
                    error, text = value
                    error.add_note(f"in a worker of DataLoader:\n{text}")
                    raise error
                yield _replaced(value, _Shared, _Shared.take)
        finally:
            self._drain(waiting, done)
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
        """Takes the batches that nobody reads any more, whose shared memory would stay."""
        while any(waiting) and all(process.is_alive() for process in self.processes):
            try:
                self._receive(waiting, done)
            except RuntimeError:
                break
        for ok, value in done.values():
            if ok:
                _replaced(value, _Shared, _Shared.take)


def _end(processes, connections):
    for connection in connections:
        try:
            connection.send(None)
        except OSError:
            pass
        connection.close()
    for process in processes:
        process.join(2)
        if process.is_alive():
            process.terminate()
