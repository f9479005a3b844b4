// A stand-in for libcudnn.so.9 on the stand-in for the driver: it computes graphs (fake_dnn.h) and
// checks them more strictly than the library does. It can be used only with
// PADDLE_FAKE_CUDA_CUDNN=1, so that other tests run the project's own kernels.
//
// The engines that its heuristics name first are those that a caller must not use: sums in any
// order, and products of rounded values. They store NaN.
//
// PADDLE_FAKE_CUDA_CUDNN_FAIL=<function>:<n> lets its nth call fail. PADDLE_FAKE_CUDA_CUDNN_GRAPHS
// is a file that gets the descriptors of all graphs, which dnn_plans.py gives to the real library.

#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>

#include "fake_dnn.h"

namespace {

constexpr int kBadParam = 2000, kNotSupported = 3000, kNotInitialized = 1001, kFailed = 5000;
constexpr size_t kWorkspace = 512;

struct Attribute {
  int type = 0;
  int64_t count = 0;
  std::string bytes;

  template <class T>
  std::vector<T> values() const {
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
    return out;
  }
};

struct FakeDescriptor {
  int type = 0;
  bool is_final = false;
  std::map<int, Attribute> attributes;

  bool has(int attribute) const { return attributes.contains(attribute); }
  template <class T>
  T value(int attribute, T otherwise = {}) const {
    const auto it = attributes.find(attribute);
    return it == attributes.end() ? otherwise : it->second.values<T>().at(0);
  }
  std::vector<int64_t> integers(int attribute) const {
    const auto it = attributes.find(attribute);
    return it == attributes.end() ? std::vector<int64_t>() : it->second.values<int64_t>();
  }
  FakeDescriptor* part(int attribute) const { return value<FakeDescriptor*>(attribute, nullptr); }
};

struct FakeHandle {
  void* stream = nullptr;
};

std::mutex& lock_of_all() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::set<const void*>& live() {
  static auto& all = *new std::set<const void*>;
  return all;
}

bool planted(const char* name) { return is_planted("PADDLE_FAKE_CUDA_CUDNN_FAIL", name); }

size_t size_of_type(int type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

// --- checks ---

bool tensor_of(const FakeDescriptor* d, DnnTensor& out) {
  if (!d || d->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || !d->is_final) return false;
  out.uid = d->value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  out.type = d->value<int>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  out.dims = d->integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  out.strides = d->integers(CUDNN_ATTR_TENSOR_STRIDES);
  out.is_virtual = d->value<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  out.by_value = d->value<char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  return true;
}

bool is_good_tensor(const FakeDescriptor& d) {
  const auto dims = d.integers(CUDNN_ATTR_TENSOR_DIMENSIONS),
             strides = d.integers(CUDNN_ATTR_TENSOR_STRIDES);
  const auto good = [](int64_t value) { return value > 0; };
  return d.has(CUDNN_ATTR_TENSOR_UNIQUE_ID) && d.has(CUDNN_ATTR_TENSOR_DATA_TYPE) &&
         d.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID) > 0 && dims.size() >= 3 &&
         dims.size() == strides.size() && std::all_of(dims.begin(), dims.end(), good) &&
         std::all_of(strides.begin(), strides.end(), good) &&
         d.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) > 0;
}

/// Whether `small` broadcasts to `large`.
bool broadcasts(const DnnTensor& small, const DnnTensor& large) {
  if (small.dims.size() != large.dims.size()) return false;
  for (size_t i = 0; i < small.dims.size(); ++i)
    if (small.dims[i] != 1 && small.dims[i] != large.dims[i]) return false;
  return true;
}

bool check_convolution(const DnnOperation& op) {
  const DnnTensor &w = op.tensors[0], &x = op.tensors[1], &y = op.tensors[2];
  const size_t rank = w.dims.size();
  if (x.dims.size() != rank || y.dims.size() != rank || op.before.size() != rank - 2 ||
      op.after.size() != rank - 2 || op.steps.size() != rank - 2 ||
      op.dilations.size() != rank - 2 || x.dims[1] % w.dims[1] != 0 || w.dims[0] != y.dims[1] ||
      x.dims[0] != y.dims[0] || y.dims[1] % (x.dims[1] / w.dims[1]) != 0)
    return false;
  for (size_t a = 0; a + 2 < rank; ++a) {
    const int64_t window = (w.dims[a + 2] - 1) * op.dilations[a] + 1;
    if ((x.dims[a + 2] + op.before[a] + op.after[a] - window) / op.steps[a] + 1 != y.dims[a + 2])
      return false;
  }
  return true;
}

/// The operation of a descriptor; false if its parts do not fit together.
bool operation_of(const FakeDescriptor& d, DnnOperation& out) {
  out.kind = d.type;
  const auto add = [&](int attribute, bool optional = false) {
    DnnTensor tensor;
    if (!d.has(attribute) && optional) {
      out.tensors.emplace_back();
      return true;
    }
    if (!tensor_of(d.part(attribute), tensor)) return false;
    out.tensors.push_back(tensor);
    return true;
  };
  const auto final_part = [&](int attribute) -> const FakeDescriptor* {
    const FakeDescriptor* const part = d.part(attribute);
    return part && part->is_final ? part : nullptr;
  };
  switch (d.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: {
      const int first = d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                            ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
                        : d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                            ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                            : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
      const FakeDescriptor* const window = final_part(first + 2);
      if (!window || d.value<float>(first) != 1 || d.value<float>(first + 1) != 0) return false;
      out.before = window->integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
      out.after = window->integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
      out.steps = window->integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
      out.dilations = window->integers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
      return window->value<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION &&
             add(first + 3) && add(first + 4) && add(first + 5) && check_convolution(out);
    }
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
      if (!final_part(CUDNN_ATTR_OPERATION_MATMUL_DESC) ||
          !add(CUDNN_ATTR_OPERATION_MATMUL_ADESC) || !add(CUDNN_ATTR_OPERATION_MATMUL_BDESC) ||
          !add(CUDNN_ATTR_OPERATION_MATMUL_CDESC))
        return false;
      const DnnTensor &a = out.tensors[0], &b = out.tensors[1], &c = out.tensors[2];
      const size_t rank = a.dims.size();
      if (b.dims.size() != rank || c.dims.size() != rank) return false;
      for (size_t i = 0; i + 2 < rank; ++i)
        if (a.dims[i] != c.dims[i] || b.dims[i] != c.dims[i]) return false;
      return a.dims[rank - 1] == b.dims[rank - 2] && a.dims[rank - 2] == c.dims[rank - 2] &&
             b.dims[rank - 1] == c.dims[rank - 1];
    }
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
      const FakeDescriptor* const how = final_part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      if (!how || !add(CUDNN_ATTR_OPERATION_POINTWISE_XDESC) ||
          !add(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, true) ||
          !add(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, true) ||
          !add(CUDNN_ATTR_OPERATION_POINTWISE_YDESC))
        return false;
      out.mode = how->value<int>(CUDNN_ATTR_POINTWISE_MODE);
      out.axis = static_cast<int>(how->value<int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
      const bool is_unary = out.mode == CUDNN_POINTWISE_EXP || out.mode == CUDNN_POINTWISE_LOG ||
                            out.mode == CUDNN_POINTWISE_GEN_INDEX;
      if (is_unary == (out.tensors[1].uid != 0) ||
          (out.mode == CUDNN_POINTWISE_BINARY_SELECT) != (out.tensors[2].uid != 0))
        return false;
      for (size_t i = 0; i < 3; ++i)
        if (out.tensors[i].uid && !broadcasts(out.tensors[i], out.tensors[3])) return false;
      return true;
    }
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: {
      const FakeDescriptor* const how = final_part(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
      if (!how || !add(CUDNN_ATTR_OPERATION_REDUCTION_XDESC) ||
          !add(CUDNN_ATTR_OPERATION_REDUCTION_YDESC))
        return false;
      out.mode = how->value<int>(CUDNN_ATTR_REDUCTION_OPERATOR);
      return broadcasts(out.tensors[1], out.tensors[0]);
    }
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return add(CUDNN_ATTR_OPERATION_RESHAPE_XDESC) && add(CUDNN_ATTR_OPERATION_RESHAPE_YDESC) &&
             out.tensors[0].size() == out.tensors[1].size() &&
             out.tensors[0].extent() == out.tensors[1].extent();
    default:
      return false;
  }
}

bool operations_of(const FakeDescriptor& graph, std::vector<DnnOperation>& out) {
  const auto it = graph.attributes.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (it == graph.attributes.end() || !graph.has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)) return false;
  std::map<int64_t, DnnTensor> tensors;
  for (const FakeDescriptor* const part : it->second.values<FakeDescriptor*>()) {
    DnnOperation operation;
    if (!part->is_final || !operation_of(*part, operation)) return false;
    // A number names one tensor.
    for (const DnnTensor& tensor : operation.tensors)
      if (const auto [known, added] = tensors.try_emplace(tensor.uid, tensor);
          !added && (known->second.dims != tensor.dims || known->second.strides != tensor.strides))
        return false;
    out.push_back(operation);
  }
  return !out.empty();
}

// --- records of graphs ---

/// Writes a descriptor after those that it refers to; returns its number.
int write_descriptor(std::ostream& out, const FakeDescriptor* d,
                     std::map<const FakeDescriptor*, int>& numbers) {
  if (const auto it = numbers.find(d); it != numbers.end()) return it->second;
  std::ostringstream own;
  for (const auto& [name, attribute] : d->attributes) {
    if (attribute.type == CUDNN_TYPE_HANDLE) continue;
    own << "set " << name << " " << attribute.type;
    if (attribute.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      for (const FakeDescriptor* part : attribute.values<FakeDescriptor*>())
        own << " " << write_descriptor(out, part, numbers);
    else if (attribute.type == CUDNN_TYPE_INT64)
      for (const int64_t value : attribute.values<int64_t>()) own << " " << value;
    else if (attribute.type == CUDNN_TYPE_FLOAT)
      for (const float value : attribute.values<float>()) own << " " << value;
    else if (attribute.type == CUDNN_TYPE_BOOLEAN)
      for (const char value : attribute.values<char>()) own << " " << int{value};
    else
      for (const int value : attribute.values<int>()) own << " " << value;
    own << "\n";
  }
  const int number = static_cast<int>(numbers.size());
  numbers[d] = number;
  out << "descriptor " << d->type << "\n" << own.str();
  return number;
}

void record_graph(const FakeDescriptor* graph) {
  const char* const path = std::getenv("PADDLE_FAKE_CUDA_CUDNN_GRAPHS");
  if (!path) return;
  std::ostringstream text;
  std::map<const FakeDescriptor*, int> numbers;
  write_descriptor(text, graph, numbers);
  static auto& known = *new std::set<std::string>;
  if (known.insert(text.str()).second)
    std::ofstream(path, std::ios::app) << text.str() << "graph\n";
}

// --- plans ---

struct EngineNotes {
  std::vector<int> notes;
  bool computes = false;
};
const EngineNotes kEngines[] = {
    {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, false},
    {{CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, false},
    {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, true},
    {{}, true},
};

struct Work {
  const std::vector<DnnOperation>* operations;
  const std::map<int64_t, void*>* addresses;
  void* workspace;
  bool computes;
};

void run(const void* data) {
  const Work& w = *static_cast<const Work*>(data);
  std::memset(w.workspace, 0xff, kWorkspace);
  DnnRun(*w.operations, *w.addresses).run();
  if (w.computes) return;
  const DnnTensor& out = w.operations->back().tensors.back();
  for (int64_t i = 0; i < out.size(); ++i)
    store(element_type(out.type), w.addresses->at(out.uid), out.offset(i), NAN);
}

int execute(const FakeHandle& handle, const FakeDescriptor& plan, const FakeDescriptor& pack) {
  const FakeDescriptor* const configuration = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const FakeDescriptor* const engine = configuration->part(CUDNN_ATTR_ENGINECFG_ENGINE);
  const FakeDescriptor* const graph = engine->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  // Captured work refers to these.
  auto* const operations = new std::vector<DnnOperation>;
  auto* const addresses = new std::map<int64_t, void*>;
  static auto& kept = *new std::vector<std::pair<void*, void*>>;
  kept.emplace_back(operations, addresses);
  if (!operations_of(*graph, *operations)) return kBadParam;
  const auto uids = pack.integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).values<void*>();
  if (uids.size() != pointers.size()) return kBadParam;
  for (size_t i = 0; i < uids.size(); ++i) (*addresses)[uids[i]] = pointers[i];
  const auto device_of = driver_function<decltype(&fake_cuda_device_of)>("fake_cuda_device_of");
  for (const DnnOperation& operation : *operations)
    for (const DnnTensor& tensor : operation.tensors) {
      if (tensor.uid == 0 || tensor.is_virtual) continue;
      const auto it = addresses->find(tensor.uid);
      if (it == addresses->end()) return kBadParam;
      if (tensor.by_value) {  // numbers are read now
        if (device_of(it->second, 1) >= 0) continue;
        it->second = new float(*static_cast<const float*>(it->second));
        kept.emplace_back(it->second, nullptr);
      } else if (device_of(it->second, static_cast<uint64_t>(tensor.extent()) *
                                           element_bytes(tensor.type)) < 0 ||
                 reinterpret_cast<uintptr_t>(it->second) % 16 != 0) {
        return kBadParam;
      }
    }
  void* const workspace = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (device_of(workspace, kWorkspace) < 0) return kBadParam;
  const auto index = static_cast<size_t>(engine->value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const Work work{operations, addresses, workspace, kEngines[index].computes};
  return driver_function<decltype(&fake_cuda_queue)>("fake_cuda_queue")(
             handle.stream, "cudnnBackendExecute", run, &work, sizeof work) == 0
             ? 0
             : kFailed;
}

void set(FakeDescriptor& d, int attribute, int type, const void* values, int64_t count) {
  d.attributes[attribute] = {type, count,
                             std::string(static_cast<const char*>(values),
                                         static_cast<size_t>(count) * size_of_type(type))};
}

}  // namespace

EXPORT size_t cudnnGetVersion() { return 99901; }
EXPORT const char* cudnnGetErrorString(int status) {
  switch (status) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case kNotInitialized:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case kBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
#define ENTER(name)                           \
  const std::lock_guard guard(lock_of_all()); \
  if (planted(name)) return kFailed

EXPORT int cudnnCreate(FakeHandle** handle) {
  if (!is_wanted("PADDLE_FAKE_CUDA_CUDNN")) return kNotInitialized;
  ENTER("cudnnCreate");
  *handle = new FakeHandle;
  live().insert(*handle);
  return 0;
}
EXPORT int cudnnDestroy(FakeHandle* handle) {
  ENTER("cudnnDestroy");
  if (live().erase(handle) == 0) return kBadParam;
  delete handle;
  return 0;
}
EXPORT int cudnnSetStream(FakeHandle* handle, void* stream) {
  ENTER("cudnnSetStream");
  if (!live().contains(handle)) return kBadParam;
  handle->stream = stream;
  return 0;
}
EXPORT int cudnnBackendCreateDescriptor(int type, FakeDescriptor** descriptor) {
  ENTER("cudnnBackendCreateDescriptor");
  *descriptor = new FakeDescriptor{type, false, {}};
  live().insert(*descriptor);
  return 0;
}
/// Descriptors that others refer to stay valid, as in the library, so they are only marked.
EXPORT int cudnnBackendDestroyDescriptor(FakeDescriptor* descriptor) {
  ENTER("cudnnBackendDestroyDescriptor");
  static auto& ended = *new std::vector<std::unique_ptr<FakeDescriptor>>;
  if (live().erase(descriptor) == 0) return kBadParam;
  ended.emplace_back(descriptor);
  return 0;
}
EXPORT int cudnnBackendSetAttribute(FakeDescriptor* d, int attribute, int type, int64_t count,
                                    const void* values) {
  ENTER("cudnnBackendSetAttribute");
  if (!live().contains(d) || d->is_final || count < 1 || !values) return kBadParam;
  set(*d, attribute, type, values, count);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (const FakeDescriptor* part : d->attributes[attribute].values<FakeDescriptor*>())
      if (!live().contains(part)) return kBadParam;
  return 0;
}
EXPORT int cudnnBackendFinalize(FakeDescriptor* d) {
  ENTER("cudnnBackendFinalize");
  if (!live().contains(d) || d->is_final) return kBadParam;
  bool good = true;
  DnnOperation operation;
  std::vector<DnnOperation> operations;
  switch (d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      good = is_good_tensor(*d);
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      good = operations_of(*d, operations);
      if (good) record_graph(d);
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
      const FakeDescriptor* const graph = d->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      good = graph && graph->is_final && d->has(CUDNN_ATTR_ENGINEHEUR_MODE);
      break;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      good = d->has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) &&
             d->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      good = d->has(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) &&
             d->has(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      good = operation_of(*d, operation);
      break;
    default:
      break;
  }
  if (!good) return kBadParam;
  d->is_final = true;
  return 0;
}
EXPORT int cudnnBackendGetAttribute(FakeDescriptor* d, int attribute, int type, int64_t most,
                                    int64_t* count, void* values) {
  ENTER("cudnnBackendGetAttribute");
  if (!live().contains(d) || !count || !values) return kBadParam;
  *count = 0;
  if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
      attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    if (!d->is_final || type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return kBadParam;
    if (d->value<int>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK) return 0;
    auto* const out = static_cast<FakeDescriptor**>(values);
    for (int64_t i = 0; i < std::min<int64_t>(most, std::size(kEngines)); ++i, ++*count) {
      if (!live().contains(out[i]) || out[i]->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        return kBadParam;
      auto* const engine = new FakeDescriptor{CUDNN_BACKEND_ENGINE_DESCRIPTOR, true, {}};
      static auto& engines = *new std::vector<FakeDescriptor*>;
      engines.push_back(engine);
      const FakeDescriptor* const graph = d->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      set(*engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &i, 1);
      set(*engine, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, &graph, 1);
      set(*out[i], CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &engine, 1);
      out[i]->is_final = true;
    }
    return 0;
  }
  if (d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && attribute == CUDNN_ATTR_ENGINECFG_ENGINE) {
    FakeDescriptor* const out = *static_cast<FakeDescriptor**>(values);
    if (most < 1 || !live().contains(out) || !d->is_final) return kBadParam;
    *out = *d->part(attribute);
    *count = 1;
    return 0;
  }
  if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && attribute == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    const auto index = static_cast<size_t>(d->value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    for (const int note : kEngines[index].notes)
      if (*count < most) static_cast<int*>(values)[(*count)++] = note;
    return 0;
  }
  if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
      attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64) {
    *static_cast<int64_t*>(values) = kWorkspace;
    *count = 1;
    return d->is_final ? 0 : kBadParam;
  }
  return kNotSupported;
}
EXPORT int cudnnBackendExecute(FakeHandle* handle, FakeDescriptor* plan, FakeDescriptor* pack) {
  ENTER("cudnnBackendExecute");
  if (!live().contains(handle) || !live().contains(plan) || !live().contains(pack) ||
      !plan->is_final || !pack->is_final)
    return kBadParam;
  return execute(*handle, *plan, *pack);
}
