// The ranks of a run for programs in Python: joining it, collectives of tensors, and messages.
// paddle_toolchain/distributed.py has what users call.

#include "comm/communicator.h"
#include "comm/join.h"
#include "comm/membership.h"
#include "python/core.h"
#include "python/lazy.h"

namespace paddle::python {
namespace {

/// That of the process, between join and leave. Guarded by the GIL; calls of several Python threads
/// at the same time are errors of the program, as ranks must agree on their order.
std::unique_ptr<comm::Communicator> joined;

comm::Communicator& communicator() {
  if (!joined)
    fail(ErrorCode::kUsage, "the process is not in a run; call distributed.init_parallel_env()");
  return *joined;
}

std::vector<int64_t> integers_of(PyObject* list) {
  const AttrValue value = attr_of(list);
  return value.as_ints();
}

std::vector<int> group_of(PyObject* list) {
  std::vector<int> out;
  for (const int64_t rank : integers_of(list)) out.push_back(static_cast<int>(rank));
  return out;
}

/// The elements in host memory, in row-major order.
Array host_array(PyObject* tensor) {
  compute({tensor_of(tensor)});
  return tensor_of(tensor).array().on_host().contiguous();
}

size_t bytes_of(const Array& array) {
  return static_cast<size_t>(storage_bytes(array.dtype, array.size()));
}

std::byte* memory_of(const Array& array) { return static_cast<std::byte*>(array.raw()); }

comm::Reduction reduction_of(const std::string& name) {
  if (name == "max") return comm::Reduction::kMax;
  if (name == "min") return comm::Reduction::kMin;
  return comm::Reduction::kSum;
}

/// The rank, the number of ranks, and that of the machine.
PyObject* join(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [] {
    const comm::Membership membership = comm::membership_from_environment();
    if (!joined) {
      require_threads();
      std::unique_ptr<comm::Communicator> made;
      {
        const WithoutLock others;
        made = membership.size == 1 ? std::make_unique<comm::Communicator>()
                                    : std::make_unique<comm::Communicator>(comm::join(
                                          membership, comm::JoinOptions::from_environment()));
      }
      joined = std::move(made);
    }
    return Py_BuildValue("iii", joined->rank(), joined->size(), membership.local_size);
  });
}

PyObject* leave(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [] {
    const std::unique_ptr<comm::Communicator> left = std::move(joined);
    const WithoutLock others;
    return Py_NewRef(Py_None);
  });
}

PyObject* barrier(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [] {
    comm::Communicator& run = communicator();
    const WithoutLock others;
    run.barrier();
    return Py_NewRef(Py_None);
  });
}

/// A collective that has begun, and its memory.
struct Started {
  Array in, out, scratch;
  bool is_complete = false;
};
constexpr const char* kStarted = "paddle_toolchain.started";

void destroy_started(PyObject* capsule) {
  auto* const started = static_cast<Started*>(PyCapsule_GetPointer(capsule, kStarted));
  if (!started) return PyErr_Clear();
  // Its memory is in use until the exchange is over.
  if (!started->is_complete && joined) try {
      joined->collectives().wait(nullptr);
    } catch (...) {
    }
  delete started;
}

PyObject* all_reduce(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensor = nullptr, *ranks = nullptr;
    const char* reduction = nullptr;
    int start = 0;
    if (!PyArg_ParseTuple(arguments, "OsOp:all_reduce", &tensor, &reduction, &ranks, &start))
      throw PythonError();
    comm::Communicator& run = communicator();
    const std::vector<int> group = group_of(ranks);
    auto job = std::make_unique<Started>();
    job->in = host_array(tensor);
    job->out = Array::empty(job->in.dtype, job->in.shape);
    job->scratch = Array::empty(DType::kU8, {static_cast<int64_t>(comm::all_reduce_scratch(
                                                job->in.dtype, job->in.size(), group.size()))});
    const comm::ReduceBuffer buffer{job->in.raw(), job->out.raw(), job->in.size()};
    const comm::CollectiveCall call{.group = group, .scratch = memory_of(job->scratch)};
    if (start) {
      run.collectives().overlap(true);
      run.collectives().start_all_reduce({&buffer, 1}, job->in.dtype, reduction_of(reduction),
                                         call);
      PyObject* const capsule = PyCapsule_New(job.get(), kStarted, destroy_started);
      if (!capsule)
        run.collectives().wait(nullptr);
      else
        static_cast<void>(job.release());
      return checked(capsule).release();
    }
    {
      const WithoutLock others;
      run.collectives().all_reduce({&buffer, 1}, job->in.dtype, reduction_of(reduction), call);
    }
    return python_tensor(Tensor(std::move(job->out))).release();
  });
}

PyObject* wait_for(PyObject* /*module*/, PyObject* capsule) {
  return guarded<PyObject*>(nullptr, [&] {
    auto* const job = static_cast<Started*>(PyCapsule_GetPointer(capsule, kStarted));
    if (!job) throw PythonError();
    comm::Communicator& run = communicator();
    if (!job->is_complete) {
      const WithoutLock others;
      run.collectives().wait(nullptr);
      job->is_complete = true;
    }
    return python_tensor(Tensor(job->out)).release();
  });
}

PyObject* reduce_scatter(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensor = nullptr, *ranks = nullptr;
    const char* reduction = nullptr;
    if (!PyArg_ParseTuple(arguments, "OsO:reduce_scatter", &tensor, &reduction, &ranks))
      throw PythonError();
    comm::Communicator& run = communicator();
    const std::vector<int> group = group_of(ranks);
    const Array in = host_array(tensor);
    const auto parts = static_cast<int64_t>(group.size());
    Dims shape = in.shape;
    if (shape.empty() || shape[0] % parts != 0)
      fail(ErrorCode::kUsage, "reduce_scatter: the first axis of ", in.shape,
           " does not divide into ", parts, " parts");
    shape[0] /= parts;
    Array out = Array::empty(in.dtype, shape);
    const std::vector<int64_t> counts(group.size(), out.size());
    const Array scratch = Array::empty(
        DType::kU8,
        {static_cast<int64_t>(comm::reduce_scatter_scratch(bytes_of(out), group.size()))});
    {
      const WithoutLock others;
      run.collectives().reduce_scatter(in.raw(), out.raw(), counts, in.dtype,
                                       reduction_of(reduction),
                                       {.group = group, .scratch = memory_of(scratch)});
    }
    return python_tensor(Tensor(std::move(out))).release();
  });
}

/// The rows of all ranks joined, of which the i-th has rows[i].
PyObject* all_gather(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensor = nullptr, *rows = nullptr, *ranks = nullptr;
    if (!PyArg_ParseTuple(arguments, "OOO:all_gather", &tensor, &rows, &ranks)) throw PythonError();
    comm::Communicator& run = communicator();
    const std::vector<int> group = group_of(ranks);
    const Array in = host_array(tensor);
    Dims shape = in.shape;
    ensure(!shape.empty(), "all_gather: an axis is missing");
    shape[0] = 1;
    const auto row = static_cast<size_t>(
        storage_bytes(in.dtype, element_count(std::span<const int64_t>(shape))));
    std::vector<size_t> bytes;
    shape[0] = 0;
    for (const int64_t count : integers_of(rows)) {
      shape[0] += count;
      bytes.push_back(static_cast<size_t>(count) * row);
    }
    Array out = Array::empty(in.dtype, shape);
    {
      const WithoutLock others;
      run.collectives().all_gather(in.raw(), out.raw(), bytes, {.group = group});
    }
    return python_tensor(Tensor(std::move(out))).release();
  });
}

/// Rows to and from the ranks of a group: sent[i] go to the i-th, received[i] come from it.
PyObject* all_to_all(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensor = nullptr, *sent = nullptr, *received = nullptr, *ranks = nullptr;
    if (!PyArg_ParseTuple(arguments, "OOOO:all_to_all", &tensor, &sent, &received, &ranks))
      throw PythonError();
    comm::Communicator& run = communicator();
    const std::vector<int> group = group_of(ranks);
    const Array in = host_array(tensor);
    Dims shape = in.shape;
    ensure(!shape.empty(), "all_to_all: an axis is missing");
    shape[0] = 1;
    const auto row = static_cast<size_t>(
        storage_bytes(in.dtype, element_count(std::span<const int64_t>(shape))));
    const auto sizes = [&](PyObject* list) {
      std::vector<size_t> bytes;
      shape[0] = 0;
      for (const int64_t count : integers_of(list)) {
        shape[0] += count;
        bytes.push_back(static_cast<size_t>(count) * row);
      }
      return bytes;
    };
    const std::vector<size_t> out_bytes = sizes(sent);
    ensure(shape[0] == in.shape[0], "all_to_all: rows are missing");
    const std::vector<size_t> in_bytes = sizes(received);
    Array out = Array::empty(in.dtype, shape);
    {
      const WithoutLock others;
      run.collectives().all_to_all(in.raw(), out_bytes, out.raw(), in_bytes, {.group = group});
    }
    return python_tensor(Tensor(std::move(out))).release();
  });
}

PyObject* send(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject* tensor = nullptr;
    int peer = 0, tag = 0;
    if (!PyArg_ParseTuple(arguments, "Oii:send", &tensor, &peer, &tag)) throw PythonError();
    comm::Communicator& run = communicator();
    const Array array = host_array(tensor);
    const WithoutLock others;
    run.isend(peer, static_cast<uint32_t>(tag), {memory_of(array), bytes_of(array)});
    return Py_NewRef(Py_None);
  });
}

PyObject* recv(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject* like = nullptr;
    int peer = 0, tag = 0;
    if (!PyArg_ParseTuple(arguments, "Oii:recv", &like, &peer, &tag)) throw PythonError();
    comm::Communicator& run = communicator();
    const Tensor& wanted = tensor_of(like);
    Array out = Array::empty(wanted.dtype(), concrete(wanted.shape()));
    {
      const WithoutLock others;
      run.recv(peer, static_cast<uint32_t>(tag), {memory_of(out), bytes_of(out)});
    }
    return python_tensor(Tensor(std::move(out))).release();
  });
}

PyMethodDef functions[] = {
    {"join_run", join, METH_NOARGS,
     "Joins the run of the environment; the rank and the number of ranks."},
    {"leave_run", leave, METH_NOARGS, "Leaves the run."},
    {"run_barrier", barrier, METH_NOARGS, "Waits for all ranks."},
    {"run_all_reduce", all_reduce, METH_VARARGS, "A reduction over ranks, or what begins it."},
    {"run_wait", wait_for, METH_O, "The result of a reduction that has begun."},
    {"run_reduce_scatter", reduce_scatter, METH_VARARGS, "This rank's part of a reduction."},
    {"run_all_gather", all_gather, METH_VARARGS, "The rows of all ranks."},
    {"run_all_to_all", all_to_all, METH_VARARGS, "Rows to and from all ranks."},
    {"run_send", send, METH_VARARGS, "Sends a tensor to a rank."},
    {"run_recv", recv, METH_VARARGS, "A tensor like another one from a rank."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_distributed(PyObject* module) { add_functions(module, functions); }

}  // namespace paddle::python
