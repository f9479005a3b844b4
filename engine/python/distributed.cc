// The ranks of a run for programs in Python: joining it, collectives of tensors, and messages.
// paddle_toolchain/distributed.py has what users call.

#include "comm/array_collectives.h"
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

comm::Reduction reduction_of(const std::string& name) {
  if (name == "max") return comm::Reduction::kMax;
  if (name == "min") return comm::Reduction::kMin;
  return comm::Reduction::kSum;
}

/// The rank, the number of ranks, and that of the machine.
PyObject* join(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded<PyObject*>(nullptr, [] {
    if (!joined) {
      require_threads();
      std::unique_ptr<comm::Communicator> made;
      {
        const WithoutLock others;
        made = comm::join_run();
      }
      joined = std::move(made);
    }
    return Py_BuildValue("iii", joined->rank(), joined->size(),
                         comm::membership_from_environment().local_size);
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

/// An all-reduce that has begun.
struct Started {
  comm::ArrayReduction job;
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
    const Array in = host_array(tensor);
    if (!start) {
      Array out;
      {
        const WithoutLock others;
        out = comm::all_reduce(run, in, reduction_of(reduction), group);
      }
      return python_tensor(Tensor(std::move(out))).release();
    }
    auto started = std::make_unique<Started>(Started{comm::ArrayReduction(in, group)});
    const comm::ReduceBuffer buffer = started->job.buffer();
    run.collectives().overlap(true);
    run.collectives().start_all_reduce(
        {&buffer, 1}, in.dtype, reduction_of(reduction),
        {.group = group, .scratch = comm::memory_of(started->job.scratch)});
    PyObject* const capsule = PyCapsule_New(started.get(), kStarted, destroy_started);
    if (!capsule)
      run.collectives().wait(nullptr);
    else
      static_cast<void>(started.release());
    return checked(capsule).release();
  });
}

PyObject* wait_for(PyObject* /*module*/, PyObject* capsule) {
  return guarded<PyObject*>(nullptr, [&] {
    auto* const started = static_cast<Started*>(PyCapsule_GetPointer(capsule, kStarted));
    if (!started) throw PythonError();
    comm::Communicator& run = communicator();
    if (!started->is_complete) {
      const WithoutLock others;
      run.collectives().wait(nullptr);
      started->is_complete = true;
    }
    return python_tensor(Tensor(started->job.out)).release();
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
    Array out;
    {
      const WithoutLock others;
      out = comm::reduce_scatter(run, in, reduction_of(reduction), group);
    }
    return python_tensor(Tensor(std::move(out))).release();
  });
}

PyObject* all_gather(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensor = nullptr, *rows = nullptr, *ranks = nullptr;
    if (!PyArg_ParseTuple(arguments, "OOO:all_gather", &tensor, &rows, &ranks)) throw PythonError();
    comm::Communicator& run = communicator();
    const std::vector<int> group = group_of(ranks);
    const std::vector<int64_t> counts = integers_of(rows);
    const Array in = host_array(tensor);
    Array out;
    {
      const WithoutLock others;
      out = comm::all_gather(run, in, counts, group);
    }
    return python_tensor(Tensor(std::move(out))).release();
  });
}

PyObject* all_to_all(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject *tensor = nullptr, *sent = nullptr, *received = nullptr, *ranks = nullptr;
    if (!PyArg_ParseTuple(arguments, "OOOO:all_to_all", &tensor, &sent, &received, &ranks))
      throw PythonError();
    comm::Communicator& run = communicator();
    const std::vector<int> group = group_of(ranks);
    const std::vector<int64_t> to = integers_of(sent), from = integers_of(received);
    const Array in = host_array(tensor);
    Array out;
    {
      const WithoutLock others;
      out = comm::all_to_all(run, in, to, from, group);
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
    run.isend(peer, static_cast<uint32_t>(tag), {comm::memory_of(array), comm::bytes_of(array)});
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
      run.recv(peer, static_cast<uint32_t>(tag), {comm::memory_of(out), comm::bytes_of(out)});
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
