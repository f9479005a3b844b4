#include "kernels/cuda/dnn_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/context.h"
#include "tensor/tensor.h"

namespace paddle::cuda {
namespace {

constexpr int64_t kMaxDnnWorkspace = int64_t{256} << 20;
constexpr int64_t kMaxPlans = 64;    // that the heuristics are asked for
constexpr size_t kMaxPointers = 16;  // of a graph: tensors in memory and numbers

const Cudnn& dnn() { return cudnn_library().functions; }

/// The library's handle of a GPU, which stays to the end of the process. It knows one stream, so
/// calls take turns.
struct DnnHandle {
  std::once_flag once;
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

DnnHandle& dnn_handle(int device) {
  static auto& handles = *new std::array<DnnHandle, kMaxGpus>;
  DnnHandle& out = handles.at(static_cast<size_t>(device));
  std::call_once(out.once, [&] {
    if (!cudnn_library().problem.empty()) return;
    use_gpu(device);
    if (dnn().cudnnCreate(&out.handle) != CUDNN_STATUS_SUCCESS) out.handle = nullptr;
  });
  return out;
}

/// A descriptor of the library.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int type) {
    if (dnn().cudnnBackendCreateDescriptor(type, &value_) != CUDNN_STATUS_SUCCESS) value_ = nullptr;
  }
  ~Descriptor() {
    if (value_) dnn().cudnnBackendDestroyDescriptor(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  const cudnnBackendDescriptor_t& get() const { return value_; }
  template <class T>
  bool set(int attribute, int type, const T* values, size_t count) const {
    return value_ &&
           dnn().cudnnBackendSetAttribute(value_, attribute, type, static_cast<int64_t>(count),
                                          values) == CUDNN_STATUS_SUCCESS;
  }
  template <class T>
  bool set(int attribute, int type, const T& value) const {
    return set(attribute, type, &value, 1);
  }
  bool set(int attribute, const Descriptor& other) const {
    return set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
  }
  bool finalize() const {
    return value_ && dnn().cudnnBackendFinalize(value_) == CUDNN_STATUS_SUCCESS;
  }
  /// The number of values that were read; 0 for an error.
  template <class T>
  size_t get(int attribute, int type, T* values, size_t most) const {
    int64_t count = 0;
    const cudnnStatus_t status = dnn().cudnnBackendGetAttribute(
        value_, attribute, type, static_cast<int64_t>(most), &count, values);
    return status == CUDNN_STATUS_SUCCESS && count > 0 ? static_cast<size_t>(count) : 0;
  }

 private:
  cudnnBackendDescriptor_t value_ = nullptr;
};

}  // namespace

bool has_dnn(int device) { return dnn_handle(device).handle != nullptr; }

int dnn_type(DType type) {
  switch (type) {
    case DType::kF32:
      return CUDNN_DATA_FLOAT;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return -1;
  }
}

// --- plans ---

struct DnnPlan::State {
  int device = 0;
  Descriptor plan;
  size_t workspace = 0;
  std::vector<int64_t> uids;   ///< of tensors in memory, then of numbers
  std::vector<float> numbers;  ///< whose addresses calls pass
};

DnnPlan::DnnPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
DnnPlan::~DnnPlan() = default;
size_t DnnPlan::workspace_bytes() const { return state_->workspace; }

void DnnPlan::execute(paddle_stream stream, std::span<const void* const> addresses,
                      std::byte* workspace) const {
  const State& state = *state_;
  use_gpu(state.device);
  const size_t count = state.uids.size();
  ensure(addresses.size() + state.numbers.size() == count,
         "cuda: a call of cuDNN with other tensors");
  std::array<const void*, kMaxPointers> all;
  std::ranges::copy(addresses, all.begin());
  for (size_t i = 0; i < state.numbers.size(); ++i) all[addresses.size() + i] = &state.numbers[i];
  const Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const void* const memory = state.workspace > 0 ? workspace : nullptr;
  const auto check = [](cudnnStatus_t status, const char* call) {
    if (status != CUDNN_STATUS_SUCCESS)
      fail(ErrorCode::kDevice, "cuda: ", call, ": ", dnn().cudnnGetErrorString(status));
  };
  if (!pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, state.uids.data(), count) ||
      !pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, all.data(), count) ||
      !pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, memory) || !pack.finalize())
    fail(ErrorCode::kDevice, "cuda: cuDNN rejects the addresses of a call");
  DnnHandle& handle = dnn_handle(state.device);
  const std::lock_guard lock(handle.mutex);
  check(dnn().cudnnSetStream(handle.handle, stream->handle), "cudnnSetStream");
  check(dnn().cudnnBackendExecute(handle.handle, state.plan.get(), pack.get()),
        "cudnnBackendExecute");
  if (!stream->is_recording) ++counts_of(state.device).launches;
}

// --- descriptions ---

int DnnGraph::tensor(int type, const Dims& shape, const Dims& strides) {
  tensors_.push_back({type, shape, strides, Tensor::Kind::kMemory});
  return static_cast<int>(tensors_.size()) - 1;
}

int DnnGraph::scalar(float value, size_t rank) {
  const Dims ones(rank, 1);
  tensors_.push_back({CUDNN_DATA_FLOAT, ones, ones, Tensor::Kind::kScalar, value});
  return static_cast<int>(tensors_.size()) - 1;
}

int DnnGraph::between(int type, const Dims& shape, const Dims& strides) {
  tensors_.push_back(
      {type, shape, strides.empty() ? contiguous_strides(shape) : strides, Tensor::Kind::kBetween});
  return static_cast<int>(tensors_.size()) - 1;
}

void DnnGraph::convolve(DnnConvolution which, const DnnWindow& window, int weight, int x, int y) {
  nodes_.push_back({Node::Kind::kConvolve,
                    static_cast<int>(which),
                    -1,
                    CUDNN_DATA_FLOAT,
                    {weight, x, y},
                    window});
}
void DnnGraph::multiply(int a, int b, int c) {
  nodes_.push_back({Node::Kind::kMultiply, 0, -1, CUDNN_DATA_FLOAT, {a, b, c}});
}
void DnnGraph::apply(int mode, int x, int second, int out) {
  nodes_.push_back({Node::Kind::kApply, mode, -1, CUDNN_DATA_FLOAT, {x, second, -1, out}});
}
void DnnGraph::index(int x, int axis, int out) {
  nodes_.push_back(
      {Node::Kind::kApply, CUDNN_POINTWISE_GEN_INDEX, axis, CUDNN_DATA_INT32, {x, -1, -1, out}});
}
void DnnGraph::is_not_less(int a, int b, int out) {
  nodes_.push_back(
      {Node::Kind::kApply, CUDNN_POINTWISE_CMP_GE, -1, CUDNN_DATA_BOOLEAN, {a, b, -1, out}});
}
void DnnGraph::select(int x, int other, int predicate, int out) {
  nodes_.push_back({Node::Kind::kApply,
                    CUDNN_POINTWISE_BINARY_SELECT,
                    -1,
                    CUDNN_DATA_FLOAT,
                    {x, other, predicate, out}});
}
void DnnGraph::fold(int operation, int x, int out) {
  nodes_.push_back({Node::Kind::kFold, operation, -1, CUDNN_DATA_FLOAT, {x, out}});
}
void DnnGraph::view(int x, int out) {
  nodes_.push_back({Node::Kind::kView, 0, -1, CUDNN_DATA_FLOAT, {x, out}});
}

std::string DnnGraph::key() const {
  std::string out;
  const auto add = [&](const auto& values) {
    for (const auto value : values) out += std::to_string(value) + ",";
    out += ";";
  };
  for (const Tensor& t : tensors_) {
    out += str(t.type, " ", static_cast<int>(t.kind), " ", t.value, " ");
    add(t.shape);
    add(t.strides);
  }
  for (const Node& n : nodes_) {
    out += str("\n", static_cast<int>(n.kind), " ", n.mode, " ", n.axis, " ", n.compute, " ");
    add(n.tensors);
    for (const auto* const values :
         {&n.window.before, &n.window.after, &n.window.strides, &n.window.dilations})
      add(*values);
  }
  return out;
}

// --- descriptors ---

/// Makes the descriptors of a graph.
class DnnBuilder {
 public:
  DnnBuilder(const DnnGraph& graph, cudnnHandle_t handle) : graph_(graph), handle_(handle) {}

  /// False if the library rejects a part.
  bool build() {
    for (size_t i = 0; i < graph_.tensors_.size(); ++i)
      if (!add_tensor(graph_.tensors_[i], static_cast<int64_t>(i) + 1)) return false;
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const DnnGraph::Node& node : graph_.nodes_) {
      if (!add_node(node)) return false;
      operations.push_back(operations_.back().get());
    }
    graph_descriptor_ = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    return graph_descriptor_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 operations.data(), operations.size()) &&
           graph_descriptor_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle_) &&
           graph_descriptor_.finalize();
  }
  /// The first plan of these heuristics that keeps the precision and the order of sums.
  bool find_plan(int mode, Descriptor& plan, int64_t& workspace) const;

 private:
  using Tensor = DnnGraph::Tensor;
  using Node = DnnGraph::Node;

  const Descriptor& tensor(int which) const { return tensors_[static_cast<size_t>(which)]; }
  bool add_tensor(const Tensor& tensor, int64_t uid);
  bool add_node(const Node& node);
  bool describe_convolution(const Node& node, Descriptor& operation);
  bool describe_pointwise(const Node& node, Descriptor& operation);
  bool is_exact(const Descriptor& configuration) const;
  /// Keeps a descriptor that others refer to.
  const Descriptor& keep(Descriptor descriptor) {
    parts_.push_back(std::move(descriptor));
    return parts_.back();
  }

  const DnnGraph& graph_;
  cudnnHandle_t handle_;
  std::vector<Descriptor> tensors_, operations_, parts_;
  Descriptor graph_descriptor_;
};

bool DnnBuilder::add_tensor(const Tensor& tensor, int64_t uid) {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const bool is_virtual = tensor.kind == Tensor::Kind::kBetween,
             by_value = tensor.kind == Tensor::Kind::kScalar;
  const auto alignment = static_cast<int64_t>(by_value ? sizeof(float) : kDnnAlignment);
  const bool good =
      d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid) &&
      d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.type) &&
      d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, tensor.shape.data(),
            tensor.shape.size()) &&
      d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, tensor.strides.data(),
            tensor.strides.size()) &&
      d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment) &&
      (!is_virtual || d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual)) &&
      (!by_value || d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, by_value)) &&
      d.finalize();
  tensors_.push_back(std::move(d));
  return good;
}

bool DnnBuilder::describe_convolution(const Node& node, Descriptor& operation) {
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const DnnWindow& w = node.window;
  const auto axes = static_cast<int64_t>(w.before.size());
  const auto set = [&](int attribute, const std::vector<int64_t>& values) {
    return d.set(attribute, CUDNN_TYPE_INT64, values.data(), values.size());
  };
  if (!d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, node.compute) ||
      !d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
             CUDNN_CROSS_CORRELATION) ||
      !d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, axes) ||
      !set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w.before) ||
      !set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w.after) ||
      !set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w.strides) ||
      !set(CUDNN_ATTR_CONVOLUTION_DILATIONS, w.dilations) || !d.finalize())
    return false;
  const auto which = static_cast<DnnConvolution>(node.mode);
  const int first =
      which == DnnConvolution::kForward     ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
      : which == DnnConvolution::kInputGrad ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                                            : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
  operation = Descriptor(which == DnnConvolution::kForward
                             ? CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                         : which == DnnConvolution::kInputGrad
                             ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                             : CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  const float alpha = 1, beta = 0;
  if (!operation.set(first, CUDNN_TYPE_FLOAT, alpha) ||
      !operation.set(first + 1, CUDNN_TYPE_FLOAT, beta) ||
      !operation.set(first + 2, keep(std::move(d))))
    return false;
  // The weight, the input and the output, or their gradients.
  for (int i = 0; i < 3; ++i)
    if (!operation.set(first + 3 + i, tensor(node.tensors[static_cast<size_t>(i)]))) return false;
  return true;
}

bool DnnBuilder::describe_pointwise(const Node& node, Descriptor& operation) {
  Descriptor d(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const auto axis = static_cast<int64_t>(node.axis);
  if (!d.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, node.mode) ||
      !d.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, node.compute) ||
      (axis >= 0 && !d.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis)) || !d.finalize())
    return false;
  operation = Descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  if (!operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(d))))
    return false;
  constexpr int kAttributes[] = {
      CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
  for (size_t i = 0; i < std::size(kAttributes); ++i)
    if (node.tensors[i] >= 0 && !operation.set(kAttributes[i], tensor(node.tensors[i])))
      return false;
  return true;
}

bool DnnBuilder::add_node(const Node& node) {
  Descriptor operation;
  const auto set_tensors = [&](std::initializer_list<int> attributes) {
    size_t i = 0;
    for (const int attribute : attributes)
      if (!operation.set(attribute, tensor(node.tensors[i++]))) return false;
    return true;
  };
  bool good = false;
  switch (node.kind) {
    case Node::Kind::kConvolve:
      good = describe_convolution(node, operation);
      break;
    case Node::Kind::kApply:
      good = describe_pointwise(node, operation);
      break;
    case Node::Kind::kMultiply: {
      Descriptor d(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
      if (!d.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, node.compute) || !d.finalize())
        return false;
      operation = Descriptor(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
      good = set_tensors({CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
                          CUDNN_ATTR_OPERATION_MATMUL_CDESC}) &&
             operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, keep(std::move(d)));
      break;
    }
    case Node::Kind::kFold: {
      Descriptor d(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
      if (!d.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, node.mode) ||
          !d.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, node.compute) ||
          !d.finalize())
        return false;
      operation = Descriptor(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
      good = set_tensors(
                 {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC}) &&
             operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, keep(std::move(d)));
      break;
    }
    case Node::Kind::kView:
      operation = Descriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
      good = set_tensors({CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC});
      break;
  }
  if (!good || !operation.finalize()) return false;
  operations_.push_back(std::move(operation));
  return true;
}

/// Whether the engine sums in one order, without converting what it reads to fewer bits.
bool DnnBuilder::is_exact(const Descriptor& configuration) const {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t value = engine.get();
  if (configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value, 1) != 1)
    return false;
  int notes[32] = {};
  const size_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                  notes, std::size(notes));
  const bool is_float32 = std::ranges::all_of(graph_.tensors_, [](const Tensor& tensor) {
    return tensor.kind != Tensor::Kind::kMemory || tensor.type == CUDNN_DATA_FLOAT;
  });
  for (size_t i = 0; i < count; ++i) switch (notes[i]) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return false;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // which round float32 to 19 bits
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
        if (is_float32) return false;
        break;
      default:
        break;
    }
  return true;
}

bool DnnBuilder::find_plan(int mode, Descriptor& plan, int64_t& workspace) const {
  const Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  if (!heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_descriptor_) ||
      !heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode) ||
      !heuristics.finalize())
    return false;
  std::vector<Descriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> values;
  for (int64_t i = 0; i < kMaxPlans; ++i) {
    configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    values.push_back(configurations.back().get());
  }
  const size_t count = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      values.data(), values.size());
  for (size_t i = 0; i < std::min(count, configurations.size()); ++i) {
    if (!is_exact(configurations[i])) continue;
    Descriptor found(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (!found.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_) ||
        !found.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[i]) || !found.finalize())
      continue;
    int64_t bytes = 0;
    if (found.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &bytes, 1) != 1 ||
        bytes < 0 || bytes > kMaxDnnWorkspace)
      continue;
    plan = std::move(found);
    workspace = bytes;
    return true;
  }
  return false;
}

std::shared_ptr<const DnnPlan> DnnGraph::make_plan(int device) const {
  const cudnnHandle_t handle = dnn_handle(device).handle;
  if (!handle) return nullptr;
  use_gpu(device);
  DnnBuilder builder(*this, handle);
  auto state = std::make_unique<DnnPlan::State>();
  state->device = device;
  int64_t workspace = 0;
  if (!builder.build() || (!builder.find_plan(CUDNN_HEUR_MODE_A, state->plan, workspace) &&
                           !builder.find_plan(CUDNN_HEUR_MODE_FALLBACK, state->plan, workspace)))
    return nullptr;
  state->workspace = static_cast<size_t>(workspace);
  for (const Tensor::Kind kind : {Tensor::Kind::kMemory, Tensor::Kind::kScalar})
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].kind != kind) continue;
      state->uids.push_back(static_cast<int64_t>(i) + 1);
      if (kind == Tensor::Kind::kScalar) state->numbers.push_back(tensors_[i].value);
    }
  if (state->uids.size() > kMaxPointers) return nullptr;
  return std::shared_ptr<const DnnPlan>(new DnnPlan(std::move(state)));
}

std::shared_ptr<const DnnPlan> DnnGraph::plan(int device) const {
  static auto& mutex = *new std::mutex;
  static auto& plans = *new std::map<std::pair<int, std::string>, std::shared_ptr<const DnnPlan>>;
  const std::lock_guard lock(mutex);
  const auto [it, added] = plans.try_emplace({device, key()});
  if (added) it->second = make_plan(device);
  return it->second;
}

}  // namespace paddle::cuda
