"""Programs that run as several ranks: collectives of tensors, messages, and data parallelism.

    import paddle_toolchain as paddle
    import paddle_toolchain.distributed as dist

    dist.init_parallel_env()
    x = paddle.to_tensor([float(dist.get_rank())])
    dist.all_reduce(x)

`paddle launch -n 4 python program.py` starts the ranks, as torchrun, mpirun and srun do, or `spawn` from a program.
All ranks of a group must call the same collectives in the same order.
"""
import atexit
import contextlib
import os
import pickle

from . import _paddle
from .autograd import no_grad
from .nn.layer import Layer


class ReduceOp:
    """How `all_reduce`, `reduce` and `reduce_scatter` combine the tensors of the ranks."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "avg"


class Group:
    """Ranks that exchange tensors. `rank` is the position of this process in it, -1 outside of it."""

    def __init__(self, ranks, number):
        self.ranks, self.id = list(ranks), number
        self.nranks = self.world_size = len(self.ranks)

    @property
    def rank(self):
        return self.get_group_rank(get_rank())

    def is_member(self):
        """Whether this process belongs to the group."""
        return self.rank >= 0

    def get_group_rank(self, rank):
        """The position of a rank in the group, -1 outside of it."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    def __repr__(self):
        return f"Group(id={self.id}, ranks={self.ranks})"


class _Run:
    """What the process knows of its run."""

    def __init__(self):
        self.rank, self.size, self.is_joined = 0, 1, False
        self.groups = [Group([0], 0)]


_run = _Run()


def init_parallel_env():
    """Joins the run that the environment describes, and waits for its other ranks; one rank without a launcher.

    The cores of the machine are divided among its ranks, unless OMP_NUM_THREADS is set.
    """
    if _run.is_joined:
        return _run.groups[0]
    rank, size, on_machine = _paddle.join_run()
    _run.rank, _run.size, _run.is_joined = rank, size, True
    _run.groups = [Group(range(size), 0)]
    if on_machine > 1 and "OMP_NUM_THREADS" not in os.environ:
        _paddle.set_num_threads(max(1, _paddle.get_num_threads() // on_machine))
    return _run.groups[0]


def destroy_process_group(group=None):
    """Leaves the run, or forgets a group."""
    if group is not None and group is not _run.groups[0]:
        _run.groups[group.id] = None
        return
    if _run.is_joined:
        _run.__init__()
        _paddle.leave_run()


atexit.register(destroy_process_group)


def is_initialized():
    """Whether the process has joined a run."""
    return _run.is_joined


def is_available():
    """Whether ranks can be used."""
    return True


def get_rank(group=None):
    """The number of this rank, in a group its position."""
    return _run.rank if group is None else group.rank


def get_world_size(group=None):
    """The number of ranks, of all or of a group."""
    return _run.size if group is None else group.nranks


class ParallelEnv:
    """The place of this process in its run."""

    rank = local_rank = property(lambda self: _run.rank)
    world_size = nranks = property(lambda self: _run.size)


def new_group(ranks=None):
    """A group of ranks. Every rank of the run makes the same groups in the same order."""
    ranks = list(range(_run.size)) if ranks is None else sorted(ranks)
    if not ranks or len(set(ranks)) != len(ranks) or ranks[0] < 0 or ranks[-1] >= _run.size:
        raise _paddle.UsageError(f"new_group: expected different ranks below {_run.size}, found {ranks}")
    group = Group(ranks, len(_run.groups))
    _run.groups.append(group)
    return group


def get_group(id=0):
    """The group with a number, 0 for all ranks."""
    group = _run.groups[id] if 0 <= id < len(_run.groups) else None
    if group is None:
        raise _paddle.UsageError(f"get_group: no group has the number {id}")
    return group


class Task:
    """An exchange that may still run; `wait` returns when the tensors have their values."""

    def __init__(self, finish=None):
        self._finish = finish

    def is_completed(self):
        """Whether `wait` would return at once."""
        return self._finish is None

    def wait(self):
        """Waits for the exchange."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        return True


def _members(group, name):
    group = _run.groups[0] if group is None else group
    if not group.is_member():
        raise _paddle.UsageError(f"{name}: rank {_run.rank} is not in the group {group.ranks}")
    return group


def _position(rank, group, name):
    position = group.get_group_rank(rank)
    if position < 0:
        raise _paddle.UsageError(f"{name}: rank {rank} is not in the group {group.ranks}")
    return position


def _function(name, *arguments, **named):
    return _paddle.function(name)(*arguments, **named)


def _write(tensor, value):
    with no_grad():
        tensor.set_value(value)


def _rows(tensors, name, like):
    """Tensors of one type, each as a row."""
    for tensor in tensors:
        if tensor.shape != like.shape or tensor.dtype != like.dtype:
            raise _paddle.UsageError(f"{name}: expected tensors of {like.dtype} {like.shape}, found {tensor.dtype} {tensor.shape}")
    return _function("stack", list(tensors))


def _row(tensor):
    return tensor.detach().unsqueeze(0)


def _reduction(op, dtype, name):
    """The reduction that ranks compute, and what is left to do with its result of a group."""
    if op not in ("sum", "max", "min", "prod", "avg"):
        raise _paddle.UsageError(f"{name}: unknown reduction {op!r}")
    if dtype.startswith("complex") and op in ("max", "min"):
        raise _paddle.UsageError(f"{name}: complex numbers have no order")
    if op == "avg" and not dtype.startswith(("float", "bfloat", "complex")):
        raise _paddle.UsageError(f"{name}: the average of {dtype} is not {dtype}")
    if dtype == "bool":
        return {"sum": "max", "max": "max"}.get(op, "min")
    return "sum" if op == "avg" else op


def _gathered(tensor, group):
    """The tensors of all ranks, along a new first axis."""
    return _paddle.run_all_gather(_row(tensor), [1] * group.nranks, group.ranks)


def _reduced(tensor, op, group, name):
    kind = _reduction(op, tensor.dtype, name)
    if kind == "prod":
        return _function("prod", _gathered(tensor, group), axis=[0]).astype(tensor.dtype)
    out = _paddle.run_all_reduce(tensor.detach(), kind, group.ranks, False)
    return out / group.nranks if op == "avg" else out


def all_reduce(tensor, op=ReduceOp.SUM, group=None, sync_op=True):
    """Replaces a tensor by the reduction of the tensors of all ranks. With `sync_op=False` it runs while the rank
    computes; `wait` of the task that it returns ends it."""
    group = _members(group, "all_reduce")
    kind = _reduction(op, tensor.dtype, "all_reduce")
    if sync_op or kind == "prod":
        _write(tensor, _reduced(tensor, op, group, "all_reduce"))
        return Task()
    started = _paddle.run_all_reduce(tensor.detach(), kind, group.ranks, True)

    def finish():
        out = _paddle.run_wait(started)
        _write(tensor, out / group.nranks if op == "avg" else out)

    return Task(finish)


def reduce(tensor, dst=0, op=ReduceOp.SUM, group=None, sync_op=True):
    """As `all_reduce`, but only the rank `dst` gets the result."""
    group = _members(group, "reduce")
    _position(dst, group, "reduce")
    out = _reduced(tensor, op, group, "reduce")
    if _run.rank == dst:
        _write(tensor, out)
    return Task()


def broadcast(tensor, src=0, group=None, sync_op=True):
    """Replaces a tensor by that of the rank `src`."""
    group = _members(group, "broadcast")
    source = _position(src, group, "broadcast")
    rows = [1 if i == source else 0 for i in range(group.nranks)]
    own = _row(tensor)
    out = _paddle.run_all_gather(own if _run.rank == src else own[:0], rows, group.ranks)
    if _run.rank != src:
        _write(tensor, out[0])
    return Task()


def all_gather(tensor_list, tensor, group=None, sync_op=True):
    """Appends the tensors of all ranks to a list, in the order of ranks."""
    tensor_list.extend(_gathered(tensor, _members(group, "all_gather")))
    return Task()


def gather(tensor, gather_list=None, dst=0, group=None, sync_op=True):
    """Appends the tensors of all ranks to a list of the rank `dst`."""
    group = _members(group, "gather")
    position = _position(dst, group, "gather")
    sent = [1 if i == position else 0 for i in range(group.nranks)]
    received = [1 if _run.rank == dst else 0] * group.nranks
    out = _paddle.run_all_to_all(_row(tensor), sent, received, group.ranks)
    if _run.rank == dst:
        if gather_list is None:
            raise _paddle.UsageError(f"gather: rank {dst} needs a gather_list")
        gather_list.extend(out)
    return Task()


def scatter(tensor, tensor_list=None, src=0, group=None, sync_op=True):
    """Replaces a tensor by the one that the rank `src` has for this rank in a list."""
    group = _members(group, "scatter")
    position = _position(src, group, "scatter")
    rows, sent = _row(tensor)[:0], [0] * group.nranks
    if _run.rank == src:
        if tensor_list is None or len(tensor_list) != group.nranks:
            raise _paddle.UsageError(f"scatter: rank {src} needs a list of {group.nranks} tensors")
        rows, sent = _rows(tensor_list, "scatter", tensor), [1] * group.nranks
    received = [1 if i == position else 0 for i in range(group.nranks)]
    _write(tensor, _paddle.run_all_to_all(rows, sent, received, group.ranks)[0])
    return Task()


def reduce_scatter(tensor, tensor_list, op=ReduceOp.SUM, group=None, sync_op=True):
    """Replaces a tensor by the reduction of the tensors that all ranks have for this rank in their lists."""
    group = _members(group, "reduce_scatter")
    if len(tensor_list) != group.nranks:
        raise _paddle.UsageError(f"reduce_scatter: expected a list of {group.nranks} tensors, found {len(tensor_list)}")
    rows = _rows(tensor_list, "reduce_scatter", tensor)
    kind = _reduction(op, tensor.dtype, "reduce_scatter")
    if kind == "prod":
        one = [1] * group.nranks
        out = _function("prod", _paddle.run_all_to_all(rows, one, one, group.ranks), axis=[0]).astype(tensor.dtype)
    else:
        out = _paddle.run_reduce_scatter(rows, kind, group.ranks)[0]
    _write(tensor, out / group.nranks if op == "avg" else out)
    return Task()


def alltoall(out_tensor_list, in_tensor_list, group=None, sync_op=True):
    """Sends the i-th tensor of a list to the i-th rank, and appends those that come to another list."""
    group = _members(group, "alltoall")
    if len(in_tensor_list) != group.nranks:
        raise _paddle.UsageError(f"alltoall: expected a list of {group.nranks} tensors, found {len(in_tensor_list)}")
    one = [1] * group.nranks
    rows = _rows(in_tensor_list, "alltoall", in_tensor_list[0])
    out_tensor_list.extend(_paddle.run_all_to_all(rows, one, one, group.ranks))
    return Task()


all_to_all = alltoall


def alltoall_single(out_tensor, in_tensor, in_split_sizes=None, out_split_sizes=None, group=None, sync_op=True):
    """Sends `in_split_sizes[i]` rows of a tensor to the i-th rank; without sizes all get as many."""
    group = _members(group, "alltoall_single")

    def sizes(given, tensor, name):
        rows = tensor.shape[0]
        given = list(given) if given else [rows // group.nranks] * group.nranks
        if len(given) != group.nranks or sum(given) != rows or min(given) < 0:
            raise _paddle.UsageError(f"alltoall_single: {name}: {given} does not divide {rows} rows among {group.nranks} ranks")
        return given

    sent, received = sizes(in_split_sizes, in_tensor, "in_split_sizes"), sizes(out_split_sizes, out_tensor, "out_split_sizes")
    _write(out_tensor, _paddle.run_all_to_all(in_tensor.detach(), sent, received, group.ranks))
    return Task()


def _other(rank, name):
    if not 0 <= rank < _run.size or rank == _run.rank:
        raise _paddle.UsageError(f"{name}: expected another rank below {_run.size}, found {rank}")
    return rank


def send(tensor, dst=0, group=None, sync_op=True):
    """Sends a tensor to a rank and returns at once. Tensors arrive in the order of sending."""
    _paddle.run_send(tensor.detach(), _other(dst, "send"), 0)
    return Task()


def recv(tensor, src=0, group=None, sync_op=True):
    """Replaces a tensor by one that a rank has sent, of the same shape and dtype."""
    peer = _other(src, "recv")
    task = Task(lambda: _write(tensor, _paddle.run_recv(tensor.detach(), peer, 0)))
    if sync_op:
        task.wait()
    return task


def isend(tensor, dst, group=None):
    """As `send`."""
    return send(tensor, dst, group)


def irecv(tensor, src=None, group=None):
    """As `recv`, but `wait` of the task that it returns receives the tensor."""
    return recv(tensor, src, group, sync_op=False)


class P2POp:
    """A message for `batch_isend_irecv`: `op` is `isend` or `irecv`."""

    def __init__(self, op, tensor, peer, group=None):
        if op not in (isend, irecv):
            raise _paddle.UsageError("P2POp: op must be isend or irecv")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


def batch_isend_irecv(p2p_op_list):
    """Begins several messages; a task for each."""
    return [each.op(each.tensor, each.peer, each.group) for each in p2p_op_list]


def barrier(group=None):
    """Waits until all ranks of a group are there."""
    group = _members(group, "barrier")
    if group.nranks == _run.size:
        if _run.is_joined:
            _paddle.run_barrier()
    else:
        _paddle.run_all_gather(_paddle.to_tensor([0]), [1] * group.nranks, group.ranks)


def wait(tensor, group=None, use_calc_stream=True):
    """Nothing: a tensor whose task has been waited for has its value."""


def _bytes_of(value):
    data = pickle.dumps(value)
    return _paddle.from_bytes(data, "uint8", [len(data)])


def _gathered_bytes(data, group):
    lengths = _gathered(_paddle.to_tensor(len(data), "int64"), group).tolist()
    joined = memoryview(_paddle.run_all_gather(data, lengths, group.ranks)).tobytes()
    begins = [sum(lengths[:i]) for i in range(len(lengths))]
    return [joined[begin:begin + length] for begin, length in zip(begins, lengths)]


def all_gather_object(object_list, obj, group=None):
    """Appends an object of each rank to a list. Objects are pickled: ranks trust each other."""
    group = _members(group, "all_gather_object")
    object_list.extend(pickle.loads(data) for data in _gathered_bytes(_bytes_of(obj), group))


def broadcast_object_list(object_list, src=0, group=None):
    """Replaces the items of a list by those of the rank `src`, which are pickled."""
    group = _members(group, "broadcast_object_list")
    source = _position(src, group, "broadcast_object_list")
    own = _bytes_of(list(object_list) if _run.rank == src else None)
    object_list[:] = pickle.loads(_gathered_bytes(own if _run.rank == src else own[:0], group)[source])


def scatter_object_list(out_object_list, in_object_list=None, src=0, group=None):
    """Appends the item of a list of the rank `src` that is for this rank. Items are pickled."""
    group = _members(group, "scatter_object_list")
    if _run.rank == src and (in_object_list is None or len(in_object_list) != group.nranks):
        raise _paddle.UsageError(f"scatter_object_list: rank {src} needs a list of {group.nranks} objects")
    items = [list(in_object_list) if _run.rank == src else None]
    broadcast_object_list(items, src, group)
    out_object_list.append(items[0][group.rank])


class DataParallel(Layer):
    """A layer whose copies on all ranks of a group train as one: they begin with the weights of the first rank, and
    `backward` averages the gradients over the ranks. Each rank reads its own share of the data, as
    `io.DistributedBatchSampler` gives it."""

    def __init__(self, layers, group=None):
        super().__init__()
        self._layers = layers
        self._group = _members(group, "DataParallel")
        self._averages, self._waiting = True, set()
        if self._group.nranks == 1:
            return
        root = self._group.ranks[0]
        for value in layers.state_dict().values():
            broadcast(value, root, self._group)
        for parameter in layers.parameters():
            if not parameter.stop_gradient:
                parameter.register_hook(self._hook_of(parameter))

    def _hook_of(self, parameter):
        def average(gradient):
            if not self._averages:
                self._waiting.add(id(parameter))
                return gradient
            if id(parameter) in self._waiting:  # what was added up under no_sync() differs from rank to rank
                self._waiting.discard(id(parameter))
                gradient = gradient + parameter.grad
                parameter.clear_grad()
            return _reduced(gradient, "avg", self._group, "DataParallel")

        return average

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients add up on each rank; the first backward pass after the scope averages their sums."""
        before, self._averages = self._averages, False
        try:
            yield
        finally:
            self._averages = before

    def forward(self, *inputs, **named):
        return self._layers(*inputs, **named)

    def state_dict(self, *arguments, **named):
        return self._layers.state_dict(*arguments, **named)

    def set_state_dict(self, *arguments, **named):
        return self._layers.set_state_dict(*arguments, **named)

    load_dict = set_state_dict


def _spawned(function, arguments, environment):
    os.environ.update(environment)
    function(*arguments)


def spawn(func, args=(), nprocs=2, join=True):
    """Runs a function in `nprocs` new processes, which are ranks of one run; it calls `init_parallel_env`. The function is
    pickled, and a program that is run as a script needs `if __name__ == "__main__"`. If one fails the others are ended."""
    import multiprocessing
    import secrets
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    context = multiprocessing.get_context("spawn")
    processes = []
    for rank in range(nprocs):
        environment = {
            "PADDLE_WORLD_SIZE": "", "PADDLE_TRAINER_ID": "", "PADDLE_TRAINERS_NUM": "", "RANK": str(rank), "WORLD_SIZE": str(nprocs),
            "LOCAL_WORLD_SIZE": str(nprocs), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "PADDLE_RENDEZVOUS": "", "PADDLE_RENDEZVOUS_TOKEN": token,
        }
        processes.append(context.Process(target=_spawned, args=(func, args, environment)))
    for process in processes:
        process.start()
    if join:
        _join(processes)
    return processes


def _join(processes):
    """Waits for processes; ends the others if one fails."""
    from multiprocessing.connection import wait as wait_for_any

    running = list(processes)
    try:
        while running:
            wait_for_any([process.sentinel for process in running])
            for process in [p for p in running if not p.is_alive()]:
                running.remove(process)
                if process.exitcode:
                    raise _paddle.PeerError(f"spawn: rank {processes.index(process)} ended with status {process.exitcode}")
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.join()
