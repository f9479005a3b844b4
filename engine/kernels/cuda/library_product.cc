#include "kernels/cuda/library_product.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/product_group.h"
#include "ops/generated/nn.h"

namespace paddle::cuda {
namespace {

constexpr int64_t kFewRows = 8;      // which our own kernels compute
constexpr size_t kMaxOperands = 64;  // of a group
constexpr size_t kMaxProductWorkspace = size_t{32} << 20;

const CublasLt& lt() { return cublaslt_library().functions; }

void check_product(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorCode::kDevice, "cuda: ", call, ": ", lt().cublasLtGetStatusName(status));
}

/// The library's handle of a GPU, which stays to the end of the process; null if the library cannot
/// be used.
cublasLtHandle_t lt_handle(int device) {
  struct Handle {
    std::once_flag once;
    cublasLtHandle_t handle = nullptr;
  };
  static auto& handles = *new std::array<Handle, kMaxGpus>;
  if (!cublaslt_library().problem.empty()) return nullptr;
  Handle& out = handles.at(static_cast<size_t>(device));
  std::call_once(out.once, [&] {
    use_gpu(device);
    if (lt().cublasLtCreate(&out.handle) != CUBLAS_STATUS_SUCCESS) out.handle = nullptr;
  });
  return out.handle;
}

std::optional<int> library_type(DType type) {
  switch (type) {
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    default:
      return std::nullopt;
  }
}

/// A matrix in the order of the library, which stores columns one after the other.
struct ColumnMatrix {
  int type = 0, transpose = CUBLAS_OP_N;
  int64_t rows = 0, columns = 0, stride = 0, batch = 0;
};

/// The matrix [rows, columns] with these strides of its rows and columns, transposed: none if
/// neither are contiguous.
std::optional<ColumnMatrix> transposed(DType dtype, int64_t rows, int64_t columns, int64_t row,
                                       int64_t column, int64_t batch) {
  ColumnMatrix out;
  const auto type = library_type(dtype);
  if (!type) return std::nullopt;
  out.type = *type;
  out.batch = batch;
  const bool has_rows = columns == 1 || column == 1, has_columns = rows == 1 || row == 1;
  if (has_rows && (rows == 1 || row >= columns)) {
    out.rows = columns;
    out.columns = rows;
    out.stride = rows == 1 ? columns : row;
    return out;
  }
  if (has_columns && (columns == 1 || column >= rows)) {
    out.rows = rows;
    out.columns = columns;
    out.stride = columns == 1 ? rows : column;
    out.transpose = CUBLAS_OP_T;
    return out;
  }
  return std::nullopt;
}

/// The one stride of a batch of several axes; none if there is not one.
std::optional<int64_t> batch_stride(const Dims& batch, const Dims& strides) {
  std::optional<int64_t> stride;
  int64_t inner = 1;
  for (size_t axis = batch.size(); axis-- > 0;) {
    if (batch[axis] == 1) continue;
    if (!stride)
      stride = strides[axis];
    else if (strides[axis] != *stride * inner)
      return std::nullopt;
    inner *= batch[axis];
  }
  return stride.value_or(0);
}

/// A descriptor of the library, which `destroy` frees.
template <class T>
class Described {
 public:
  explicit Described(cublasStatus_t (*destroy)(T)) : destroy_(destroy) {}
  ~Described() {
    if (value) destroy_(value);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
  T value = nullptr;

 private:
  cublasStatus_t (*destroy_)(T);
};

}  // namespace

struct LibraryProduct::State {
  int device = 0;
  cublasLtHandle_t handle = nullptr;
  float alpha = 1;
  bool biased = false;
  Described<cublasLtMatmulDesc_t> product{lt().cublasLtMatmulDescDestroy};
  Described<cublasLtMatrixLayout_t> a{lt().cublasLtMatrixLayoutDestroy},
      b{lt().cublasLtMatrixLayoutDestroy}, d{lt().cublasLtMatrixLayoutDestroy};
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
  std::mutex mutex;  ///< of the descriptor, which holds the bias's address

  void set(int attribute, const void* value, size_t bytes) const {
    check_product(lt().cublasLtMatmulDescSetAttribute(product.value, attribute, value, bytes),
                  "cublasLtMatmulDescSetAttribute");
  }
  static void create(Described<cublasLtMatrixLayout_t>& layout, const ColumnMatrix& matrix,
                     int count) {
    check_product(lt().cublasLtMatrixLayoutCreate(
                      &layout.value, matrix.type, static_cast<uint64_t>(matrix.rows),
                      static_cast<uint64_t>(matrix.columns), matrix.stride),
                  "cublasLtMatrixLayoutCreate");
    if (count == 1) return;
    const auto set = [&](int attribute, const void* value, size_t bytes) {
      check_product(lt().cublasLtMatrixLayoutSetAttribute(layout.value, attribute, value, bytes),
                    "cublasLtMatrixLayoutSetAttribute");
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch, sizeof matrix.batch);
  }
  bool choose_algorithm();
};

/// The first algorithm of the heuristics whose sums have one order. False if there is none.
bool LibraryProduct::State::choose_algorithm() {
  Described<cublasLtMatmulPreference_t> preference(lt().cublasLtMatmulPreferenceDestroy);
  check_product(lt().cublasLtMatmulPreferenceCreate(&preference.value),
                "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](int attribute, const auto& value) {
    check_product(lt().cublasLtMatmulPreferenceSetAttribute(preference.value, attribute, &value,
                                                            sizeof value),
                  "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kMaxProductWorkspace));
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  for (const int operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(operand, static_cast<uint32_t>(kProductAlignment));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      lt().cublasLtMatmulAlgoGetHeuristic(handle, product.value, a.value, b.value, d.value, d.value,
                                          preference.value, 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count < 1 || found.state != CUBLAS_STATUS_SUCCESS ||
      found.workspaceSize > kMaxProductWorkspace)
    return false;
  algorithm = found.algo;
  workspace = found.workspaceSize;
  return true;
}

LibraryProduct::LibraryProduct(std::unique_ptr<State> state) : state_(std::move(state)) {}
LibraryProduct::~LibraryProduct() = default;

std::shared_ptr<const LibraryProduct> LibraryProduct::of(int device, const Product& product,
                                                         ProductActivation activation,
                                                         bool pinned) {
  if (product.x != product.y || (product.out != product.x && product.out != DType::kF32) ||
      (product.bias && *product.bias != product.out) || product.out_column != 1 ||
      product.m * product.n * product.k == 0)
    return nullptr;
  if (!pinned && (product.m <= kFewRows || product.n <= kFewRows)) return nullptr;
  const auto x_batch = batch_stride(product.batch, product.x_batch),
             y_batch = batch_stride(product.batch, product.y_batch),
             out_batch = batch_stride(product.batch, product.out_batch);
  const int64_t batches = element_count(std::span<const int64_t>(product.batch));
  if (!x_batch || !y_batch || !out_batch || batches < 1 || batches > INT32_MAX) return nullptr;
  // out = x y with rows one after the other is out = y x with columns one after the other.
  const auto a = transposed(product.y, product.k, product.n, product.y_row, product.y_column,
                            *y_batch),
             b = transposed(product.x, product.m, product.k, product.x_row, product.x_column,
                            *x_batch),
             d = transposed(product.out, product.m, product.n, product.out_row, 1, *out_batch);
  if (!a || !b || !d || d->transpose != CUBLAS_OP_N) return nullptr;
  const cublasLtHandle_t handle = lt_handle(device);
  if (!handle) return nullptr;
  use_gpu(device);
  auto state = std::make_unique<State>();
  state->device = device;
  state->handle = handle;
  state->alpha = static_cast<float>(product.factor);
  state->biased = product.bias.has_value();
  check_product(
      lt().cublasLtMatmulDescCreate(&state->product.value, CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "cublasLtMatmulDescCreate");
  state->set(CUBLASLT_MATMUL_DESC_TRANSA, &a->transpose, sizeof a->transpose);
  state->set(CUBLASLT_MATMUL_DESC_TRANSB, &b->transpose, sizeof b->transpose);
  int epilogue = activation == ProductActivation::kRelu       ? CUBLASLT_EPILOGUE_RELU
                 : activation == ProductActivation::kTanhGelu ? CUBLASLT_EPILOGUE_GELU
                                                              : 0;
  if (state->biased) epilogue |= CUBLASLT_EPILOGUE_BIAS;
  if (epilogue == 0) epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  state->set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  const int count = static_cast<int>(batches);
  State::create(state->a, *a, count);
  State::create(state->b, *b, count);
  State::create(state->d, *d, count);
  if (!state->choose_algorithm()) return nullptr;
  return std::shared_ptr<const LibraryProduct>(new LibraryProduct(std::move(state)));
}

size_t LibraryProduct::workspace_bytes() const { return state_->workspace; }

void LibraryProduct::launch(paddle_stream stream, const void* x, const void* y, const void* bias,
                            void* out, std::byte* workspace) const {
  State& state = *state_;
  use_gpu(state.device);
  const float beta = 0;
  std::unique_lock lock(state.mutex, std::defer_lock);
  if (state.biased) {
    lock.lock();
    state.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  }
  check_product(lt().cublasLtMatmul(
                    state.handle, state.product.value, &state.alpha, y, state.a.value, x,
                    state.b.value, &beta, out, state.d.value, out, state.d.value, &state.algorithm,
                    state.workspace > 0 ? workspace : nullptr, state.workspace, stream->handle),
                "cublasLtMatmul");
  if (!stream->is_recording) ++counts_of(state.device).launches;
}

namespace {

ProductActivation activation_of(const FusedStep& step) {
  if (step.op->name() == "relu") return ProductActivation::kRelu;
  if (step.op->name() == "gelu" && GeluAttrs(step.attrs).approximate)
    return ProductActivation::kTanhGelu;
  return ProductActivation::kNone;
}

/// A product by the library, or a group that begins with one.
class ProductKernel final : public Kernel {
 public:
  /// `inputs`: the operands that are x, y and the bias that the library adds, -1 if absent. `spare`
  /// is our own kernel, for addresses that the library's algorithm does not allow.
  ProductKernel(std::shared_ptr<const LibraryProduct> product, std::array<int, 3> inputs,
                std::unique_ptr<Kernel> spare)
      : product_(std::move(product)), inputs_(inputs), spare_(std::move(spare)) {}

  /// The library stores `bytes` in scratch, which `rest` reads as an operand after the others, at
  /// most kMaxOperands.
  void add_rest(std::unique_ptr<Kernel> rest, size_t operands, size_t bytes) {
    rest_ = std::move(rest);
    operands_ = operands;
    product_bytes_ = scratch_piece(bytes);
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const auto input = [&](size_t i) { return inputs_[i] < 0 ? nullptr : operands[inputs_[i]]; };
    void* const out = rest_ ? context.scratch : results[0];
    std::byte* const workspace = context.scratch + product_bytes_;
    const std::array<const void*, 4> addresses = {input(0), input(1), input(2), out};
    if (!are_aligned(addresses, kProductAlignment)) return spare_->run(context, operands, results);
    product_->launch(context.stream, input(0), input(1), input(2), out, workspace);
    if (!rest_) return;
    std::array<void*, kMaxOperands + 1> all;
    std::copy_n(operands, operands_, all.begin());
    all[operands_] = out;
    RunContext rest = context;
    rest.scratch = workspace + scratch_piece(product_->workspace_bytes());
    rest_->run(rest, all.data(), results);
  }
  size_t scratch_bytes() const override {
    size_t bytes = product_bytes_ + scratch_piece(product_->workspace_bytes());
    if (rest_) bytes += rest_->scratch_bytes();
    return std::max(bytes, spare_->scratch_bytes());
  }
  std::string implementation() const override {
    return rest_ ? "cublaslt:product_group" : "cublaslt:matmul";
  }

 private:
  std::shared_ptr<const LibraryProduct> product_;
  std::array<int, 3> inputs_;
  std::unique_ptr<Kernel> spare_, rest_;
  size_t operands_ = 0, product_bytes_ = 0;
};

/// The group after a product in float32. A bias that the library does not add becomes the first
/// step.
FusedRequest after_library(const FusedRequest& request, bool adds_bias) {
  FusedRequest rest = after_product(request);
  rest.operands.back().dtype = DType::kF32;
  if (!adds_bias) return rest;
  const int value = static_cast<int>(request.operands.size());
  const FusedStep& product = request.steps[0];
  const auto moved = [&](int& index) { index += index >= value; };
  for (FusedStep& step : rest.steps)
    for (int& index : step.inputs) moved(index);
  for (int& index : rest.result_values) moved(index);
  rest.steps.insert(rest.steps.begin(),
                    FusedStep{find_op("add"), Attrs(), {value, product.inputs[2]}, product.result});
  return rest;
}

}  // namespace

bool has_library_product(const Op& op, const TargetInfo& target, std::span<const DType> operands) {
  return is_product(op) &&
         std::ranges::all_of(operands, [](DType type) { return library_type(type).has_value(); }) &&
         lt_handle(target.device.index) != nullptr;
}

std::unique_ptr<Kernel> prepare_library_product(const KernelRequest& request) {
  if (!is_product(request.op) || request.results[0].size() == 0 ||
      !cublaslt_library().problem.empty())
    return nullptr;
  const auto product = product_of(request);
  if (!product) return nullptr;
  auto by_library = LibraryProduct::of(request.target.device.index, *product,
                                       ProductActivation::kNone, request.prepare.backend_pinned);
  if (!by_library) return nullptr;
  auto spare = prepare_matmul(compiled_late(request));
  if (!spare) return nullptr;
  return std::make_unique<ProductKernel>(
      std::move(by_library), std::array<int, 3>{0, 1, product->bias ? 2 : -1}, std::move(spare));
}

std::unique_ptr<Kernel> prepare_library_product_group(const FusedRequest& request) {
  if (!cublaslt_library().problem.empty() || request.operands.size() > kMaxOperands) return nullptr;
  const auto first = first_product(request);
  if (!first || request.steps[0].results[0].size() == 0) return nullptr;
  const int device = request.target.device.index;
  const bool pinned = request.prepare.backend_pinned;
  Product product = first->product;
  std::array<int, 3> inputs = first->inputs;
  // The library applies an activation before it stores, if nothing else follows.
  const ProductActivation activation = activation_of(request.steps[1]);
  const int value = static_cast<int>(request.operands.size());
  std::shared_ptr<const LibraryProduct> by_library;
  if (request.steps.size() == 2 && activation != ProductActivation::kNone &&
      request.result_values == std::vector<int>{value + 1}) {
    product.out = request.results[0].dtype;
    by_library = LibraryProduct::of(device, product, activation, pinned);
  }
  const bool whole = by_library != nullptr;
  const bool adds_bias = !whole && product.bias && *product.bias != DType::kF32;
  if (!whole) {
    product.out = DType::kF32;
    if (adds_bias) product.bias.reset();
    by_library = LibraryProduct::of(device, product, ProductActivation::kNone, pinned);
    if (!by_library) return nullptr;
    if (adds_bias) inputs[2] = -1;
  }
  auto spare = prepare_product_group(compiled_late(request));
  if (!spare) return nullptr;
  auto kernel = std::make_unique<ProductKernel>(std::move(by_library), inputs, std::move(spare));
  if (whole) return kernel;
  auto rest = prepare_group(after_library(request, adds_bias));
  if (!rest) return nullptr;
  kernel->add_rest(std::move(rest), request.operands.size(),
                   static_cast<size_t>(request.steps[0].results[0].size()) * sizeof(float));
  return kernel;
}

}  // namespace paddle::cuda
