// A stand-in for libcublasLt.so.13 on the stand-in for the driver: it computes products in float32
// and checks arguments more strictly than the library does. It can be used only with
// PADDLE_FAKE_CUDA_CUBLASLT=1, so that other tests run the project's own kernels.
//
// PADDLE_FAKE_CUDA_CUBLASLT_FAIL=<function>:<n> lets its nth call fail.

#include <algorithm>
#include <mutex>
#include <set>
#include <string>

#include "fake_library.h"
#include "kernels/cuda/abi/cublaslt.h"

namespace {

using namespace paddle::cuda;

constexpr int kInvalid = 7, kNotInitialized = 1, kNotSupported = 15, kFailed = 13;
constexpr uint64_t kAlgorithm = 0x70616464;  // what the heuristics write

struct FakeProduct {
  int compute = 0, scale = 0, transpose_a = 0, transpose_b = 0;
  int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct FakeLayout {
  int type = 0;
  int64_t rows = 0, columns = 0, stride = 0;
  int32_t batches = 1;
  int64_t batch_stride = 0;
};
struct FakePreference {
  uint64_t workspace = 0;
  uint32_t schemes = 7, alignment[4] = {256, 256, 256, 256};
};

std::mutex& lock_of_all() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
/// Objects that were created and not destroyed.
std::set<const void*>& live() {
  static auto& all = *new std::set<const void*>;
  return all;
}
bool is_live(const void* object) {
  const std::lock_guard guard(lock_of_all());
  return live().contains(object);
}
template <class T>
T* add(T* object) {
  const std::lock_guard guard(lock_of_all());
  live().insert(object);
  return object;
}
template <class T>
int remove(T* object) {
  const std::lock_guard guard(lock_of_all());
  if (live().erase(object) == 0) return kInvalid;
  delete object;
  return 0;
}

bool planted(const char* name) { return is_planted("PADDLE_FAKE_CUDA_CUBLASLT_FAIL", name); }

bool element_of(int type, Element& out) {
  out = type == CUDA_R_16F ? Element::kF16 : type == CUDA_R_16BF ? Element::kBF16 : Element::kF32;
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

/// A product as it runs: what a kernel of the library would get.
struct Work {
  Element a_type, b_type, d_type;
  FakeLayout a, b, d;
  const void *a_data, *b_data, *bias;
  void *d_data, *workspace;
  uint64_t workspace_bytes;
  float alpha;
  int transpose_a, transpose_b, epilogue;
};

float activated(float x, int epilogue) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x > 0 ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU)
    return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  return x;
}

void run(const void* data) {
  const Work& w = *static_cast<const Work*>(data);
  // Sums of other kernels lie there meanwhile.
  if (w.workspace_bytes > 0) std::memset(w.workspace, 0xff, w.workspace_bytes);
  const int64_t depth = w.transpose_a == CUBLAS_OP_N ? w.a.columns : w.a.rows;
  for (int64_t batch = 0; batch < w.d.batches; ++batch)
    for (int64_t column = 0; column < w.d.columns; ++column)
      for (int64_t row = 0; row < w.d.rows; ++row) {
        float sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t a =
              w.transpose_a == CUBLAS_OP_N ? row + k * w.a.stride : k + row * w.a.stride;
          const int64_t b =
              w.transpose_b == CUBLAS_OP_N ? k + column * w.b.stride : column + k * w.b.stride;
          sum += load(w.a_type, w.a_data, a + batch * w.a.batch_stride) *
                 load(w.b_type, w.b_data, b + batch * w.b.batch_stride);
        }
        sum *= w.alpha;
        if (w.epilogue & CUBLASLT_EPILOGUE_BIAS) sum += load(w.d_type, w.bias, row);
        store(w.d_type, w.d_data, row + column * w.d.stride + batch * w.d.batch_stride,
              activated(sum, w.epilogue));
      }
}

/// Whether layouts fit together as the library demands.
int check_layouts(const FakeProduct& product, const FakeLayout& a, const FakeLayout& b,
                  const FakeLayout& d) {
  Element types[3];
  if (!element_of(a.type, types[0]) || !element_of(b.type, types[1]) ||
      !element_of(d.type, types[2]) || a.type != b.type ||
      (d.type != a.type && d.type != CUDA_R_32F) || product.compute != CUBLAS_COMPUTE_32F ||
      product.scale != CUDA_R_32F)
    return kNotSupported;
  const bool plain_a = product.transpose_a == CUBLAS_OP_N,
             plain_b = product.transpose_b == CUBLAS_OP_N;
  if ((plain_a ? a.rows : a.columns) != d.rows || (plain_b ? b.columns : b.rows) != d.columns ||
      (plain_a ? a.columns : a.rows) != (plain_b ? b.rows : b.columns))
    return kInvalid;
  for (const FakeLayout* each : {&a, &b, &d}) {
    if (each->rows < 1 || each->columns < 1 || each->stride < each->rows ||
        each->batches != d.batches)
      return kInvalid;
    if (each == &d && each->batches > 1 && each->batch_stride < each->stride * each->columns)
      return kInvalid;  // results would overlap
  }
  return 0;
}

uint64_t bytes_of(const FakeLayout& layout, Element type) {
  const int64_t last = (layout.batches - 1) * layout.batch_stride +
                       (layout.columns - 1) * layout.stride + layout.rows;
  return static_cast<uint64_t>(last) * size_of(type);
}

const FakeLayout* layout_of(cublasLtMatrixLayout_t layout) {
  return reinterpret_cast<const FakeLayout*>(layout);
}

/// The bytes that the algorithm needs: some results of chunks of a long sum.
uint64_t workspace_of(const FakeProduct& product, const FakeLayout& a, const FakeLayout& d) {
  const int64_t depth = product.transpose_a == CUBLAS_OP_N ? a.columns : a.rows;
  constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
  return depth < 512 ? 0 : std::min(kMaxBytes, static_cast<uint64_t>(d.rows * d.columns) * 4);
}

}  // namespace

EXPORT size_t cublasLtGetVersion() { return 139901; }
EXPORT const char* cublasLtGetStatusName(int status) {
  switch (status) {
    case 0:
      return "CUBLAS_STATUS_SUCCESS";
    case kNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kInvalid:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}
EXPORT int cublasLtCreate(void** handle) {
  if (!is_wanted("PADDLE_FAKE_CUDA_CUBLASLT") || planted("cublasLtCreate")) return kNotInitialized;
  *handle = add(new FakeProduct);
  return 0;
}
EXPORT int cublasLtDestroy(void* handle) { return remove(static_cast<FakeProduct*>(handle)); }
EXPORT int cublasLtMatmulDescCreate(FakeProduct** product, int compute, int scale) {
  if (planted("cublasLtMatmulDescCreate")) return kFailed;
  *product = add(new FakeProduct{compute, scale});
  return 0;
}
EXPORT int cublasLtMatmulDescDestroy(FakeProduct* product) { return remove(product); }
EXPORT int cublasLtMatmulDescSetAttribute(FakeProduct* product, int attribute, const void* value,
                                          size_t bytes) {
  if (planted("cublasLtMatmulDescSetAttribute")) return kFailed;
  if (!is_live(product) || !value) return kInvalid;
  const auto set = [&](auto& field) {
    if (bytes != sizeof field) return kInvalid;
    std::memcpy(&field, value, bytes);
    return 0;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(product->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(product->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(product->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(product->bias);
    default:
      return kInvalid;
  }
}
EXPORT int cublasLtMatrixLayoutCreate(FakeLayout** layout, int type, uint64_t rows,
                                      uint64_t columns, int64_t stride) {
  if (planted("cublasLtMatrixLayoutCreate")) return kFailed;
  *layout = add(new FakeLayout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns),
                               stride, 1, 0});
  return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(FakeLayout* layout) { return remove(layout); }
EXPORT int cublasLtMatrixLayoutSetAttribute(FakeLayout* layout, int attribute, const void* value,
                                            size_t bytes) {
  if (planted("cublasLtMatrixLayoutSetAttribute")) return kFailed;
  if (!is_live(layout) || !value) return kInvalid;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof layout->batches) {
    std::memcpy(&layout->batches, value, bytes);
    return layout->batches > 0 ? 0 : kInvalid;
  }
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
      bytes == sizeof layout->batch_stride) {
    std::memcpy(&layout->batch_stride, value, bytes);
    return 0;
  }
  return kInvalid;
}
EXPORT int cublasLtMatmulPreferenceCreate(FakePreference** preference) {
  if (planted("cublasLtMatmulPreferenceCreate")) return kFailed;
  *preference = add(new FakePreference);
  return 0;
}
EXPORT int cublasLtMatmulPreferenceDestroy(FakePreference* preference) {
  return remove(preference);
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(FakePreference* preference, int attribute,
                                                const void* value, size_t bytes) {
  if (planted("cublasLtMatmulPreferenceSetAttribute")) return kFailed;
  if (!is_live(preference) || !value) return kInvalid;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == 8) {
    std::memcpy(&preference->workspace, value, bytes);
    return 0;
  }
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == 4) {
    std::memcpy(&preference->schemes, value, bytes);
    return 0;
  }
  const int which = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (which < 0 || which > 3 || bytes != 4) return kInvalid;
  std::memcpy(&preference->alignment[which], value, bytes);
  return 0;
}
EXPORT int cublasLtMatmulAlgoGetHeuristic(void* handle, FakeProduct* product, FakeLayout* a,
                                          FakeLayout* b, FakeLayout* c, FakeLayout* d,
                                          FakePreference* preference, int most,
                                          cublasLtMatmulHeuristicResult_t* found, int* count) {
  if (planted("cublasLtMatmulAlgoGetHeuristic")) return kNotSupported;
  for (const void* const object :
       {handle, static_cast<void*>(product), static_cast<void*>(a), static_cast<void*>(b),
        static_cast<void*>(c), static_cast<void*>(d), static_cast<void*>(preference)})
    if (!is_live(object)) return kInvalid;
  if (most < 1 || c != d) return kInvalid;
  *count = 0;
  // Sums that atomic additions make have other bits in every run; the project must exclude them.
  if (preference->schemes & 1) return kNotSupported;
  if (const int error = check_layouts(*product, *a, *b, *d)) return error;
  const uint64_t workspace = workspace_of(*product, *a, *d);
  if (workspace > preference->workspace) return kNotSupported;
  *found = {};
  found->algo.data[0] = kAlgorithm;
  found->algo.data[1] = preference->alignment[0];
  found->workspaceSize = workspace;
  *count = 1;
  return 0;
}
EXPORT int cublasLtMatmul(void* handle, FakeProduct* product, const float* alpha,
                          const void* a_data, cublasLtMatrixLayout_t a, const void* b_data,
                          cublasLtMatrixLayout_t b, const float* beta, const void* c_data,
                          cublasLtMatrixLayout_t c, void* d_data, cublasLtMatrixLayout_t d,
                          const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                          size_t workspace_bytes, void* stream) {
  if (planted("cublasLtMatmul")) return kFailed;
  for (const void* const object : {handle, static_cast<void*>(product), static_cast<void*>(a),
                                   static_cast<void*>(b), static_cast<void*>(d)})
    if (!is_live(object)) return kInvalid;
  if (*beta != 0 || c_data != d_data || c != d || !algorithm || algorithm->data[0] != kAlgorithm)
    return kInvalid;
  Work w{};
  w.a = *layout_of(a);
  w.b = *layout_of(b);
  w.d = *layout_of(d);
  if (const int error = check_layouts(*product, w.a, w.b, w.d)) return error;
  element_of(w.a.type, w.a_type);
  element_of(w.b.type, w.b_type);
  element_of(w.d.type, w.d_type);
  const uint64_t needed = workspace_of(*product, w.a, w.d);
  if (workspace_bytes < needed || (needed > 0 && !workspace)) return kInvalid;
  const bool has_bias = product->epilogue & CUBLASLT_EPILOGUE_BIAS;
  const auto device_of = driver_function<decltype(&fake_cuda_device_of)>("fake_cuda_device_of");
  struct Operand {
    const void* data;
    uint64_t bytes;
    uint64_t alignment;
  };
  const Operand operands[] = {
      {a_data, bytes_of(w.a, w.a_type), algorithm->data[1]},
      {b_data, bytes_of(w.b, w.b_type), algorithm->data[1]},
      {d_data, bytes_of(w.d, w.d_type), algorithm->data[1]},
      {has_bias ? product->bias : d_data,
       has_bias ? static_cast<uint64_t>(w.d.rows) * size_of(w.d_type) : 1, 16},
      {needed > 0 ? workspace : d_data, needed > 0 ? needed : 1, needed > 0 ? 256u : 1u}};
  for (const Operand& each : operands)
    if (device_of(each.data, each.bytes) < 0 ||
        reinterpret_cast<uintptr_t>(each.data) % each.alignment != 0)
      return kInvalid;
  w.a_data = a_data;
  w.b_data = b_data;
  w.d_data = d_data;
  w.bias = product->bias;
  w.workspace = workspace;
  w.workspace_bytes = needed;
  w.alpha = *alpha;
  w.transpose_a = product->transpose_a;
  w.transpose_b = product->transpose_b;
  w.epilogue = product->epilogue;
  return driver_function<decltype(&fake_cuda_queue)>("fake_cuda_queue")(stream, "cublasLtMatmul",
                                                                        run, &w, sizeof w) == 0
             ? 0
             : kFailed;
}
