#include "plugin/host.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "plugin/frame.h"
#include "plugin/plugin.h"
#include "plugin/ranks_adapter.h"
#include "plugin/rules_adapter.h"
#include "plugin/table_adapter.h"
#include "tensor/random.h"

namespace paddle::plugin {
namespace {

std::mutex log_mutex;
std::function<void(int, const std::string&)>& log_sink() {
  static std::function<void(int, const std::string&)> sink;
  return sink;
}

paddle_status fail_at(paddle_call* call, const char* file, int32_t line, int32_t column,
                      paddle_status status, const char* text) {
  return set_error(call, status, text ? text : "", {file ? file : "", line, column});
}

void* allocate(paddle_call* call, size_t bytes, size_t alignment) {
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  void* memory = nullptr;
  if ((alignment & (alignment - 1)) == 0 && posix_memalign(&memory, alignment, bytes) == 0)
    return memory;
  fail_at(call, nullptr, 0, 0, PADDLE_DEVICE, "out of memory");
  return nullptr;
}

const AttrValue* attr(const paddle_request* request, int32_t index) {
  const auto& data = *static_cast<const RequestData*>(request->operation);
  if (index < 0 || static_cast<size_t>(index) >= data.attrs.values.size()) return nullptr;
  return &data.attrs[static_cast<size_t>(index)];
}

/// Lists of attributes that plug-ins asked for, kept for the thread's next few requests.
template <class T>
const std::vector<T>& kept(std::vector<T> values) {
  constexpr size_t kMaxLists = 256;
  thread_local std::deque<std::vector<T>> lists;
  if (lists.size() >= kMaxLists) lists.pop_front();
  return lists.emplace_back(std::move(values));
}

size_t attr_ints(const paddle_request* request, int32_t index, const int64_t** values) {
  *values = nullptr;
  const AttrValue* const a = attr(request, index);
  if (!a || !(a->is_list() || a->is_int())) return 0;
  try {
    const auto& list = kept(a->as_ints());
    *values = list.data();
    return list.size();
  } catch (const Error&) {
    return 0;
  }
}

size_t attr_floats(const paddle_request* request, int32_t index, const double** values) {
  *values = nullptr;
  const AttrValue* const a = attr(request, index);
  if (!a || !(a->is_list() || a->is_float() || a->is_int())) return 0;
  try {
    const auto& list = kept(a->as_doubles());
    *values = list.data();
    return list.size();
  } catch (const Error&) {
    return 0;
  }
}

paddle_host make_host() {
  paddle_host h{};
  h.struct_size = sizeof h;
  h.abi_minor = PADDLE_PLUGIN_ABI_MINOR;
  h.version = PADDLE_VERSION;
  h.table = [](const char* name, uint32_t version) -> const void* {
    const std::string_view wanted = name ? name : "";
    if (version != 1) return nullptr;
    if (wanted == PADDLE_RECORDS) return &records_functions();
    if (wanted == PADDLE_TYPES) return &types_functions();
    if (wanted == PADDLE_BUILD) return &build_functions();
    if (wanted == PADDLE_RANKS) return &ranks_functions();
    return nullptr;
  };
  h.fail = [](paddle_call* call, paddle_status status, const char* text) {
    return fail_at(call, nullptr, 0, 0, status, text);
  };
  h.fail_at = fail_at;
  h.log = [](int32_t level, const char* text) {
    const std::lock_guard lock(log_mutex);
    if (log_sink()) log_sink()(level, text ? text : "");
  };
  h.allocate = allocate;
  h.release = [](void* memory) { std::free(memory); };
  h.parallel_for = [](paddle_call*, int64_t count, int64_t grain,
                      void (*body)(void*, int64_t, int64_t), void* context) {
    const FrameRecord frame = current_frame();
    parallel_for(count, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
      const Frame same(frame);
      body(context, begin, end);
    });
  };
  h.thread_count = [] { return static_cast<uint32_t>(thread_count()); };
  h.cancelled = [](paddle_call*) { return static_cast<int32_t>(pending_interrupt() != 0); };
  h.random = [](uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]) {
    const PhiloxCounter words = Random(seed, stream).block(index);
    std::copy(words.begin(), words.end(), out);
  };
  h.attr_index = [](const paddle_request* request, const char* name) {
    return static_cast<int32_t>(
        static_cast<const RequestData*>(request->operation)->op.attr_index(name));
  };
  h.attr_int = [](const paddle_request* request, int32_t index) -> int64_t {
    const AttrValue* const a = attr(request, index);
    return a && a->is_int() && a->as_dim().is_constant() ? a->as_int() : 0;
  };
  h.attr_float = [](const paddle_request* request, int32_t index) {
    const AttrValue* const a = attr(request, index);
    return a && (a->is_float() || (a->is_int() && a->as_dim().is_constant())) ? a->as_double()
                                                                              : 0.0;
  };
  h.attr_bool = [](const paddle_request* request, int32_t index) {
    const AttrValue* const a = attr(request, index);
    return static_cast<int32_t>(a && a->is_bool() && a->as_bool());
  };
  h.attr_text = [](const paddle_request* request, int32_t index) -> const char* {
    const AttrValue* const a = attr(request, index);
    return a && a->is_string() ? a->as_string().c_str() : nullptr;
  };
  h.attr_ints = attr_ints;
  h.attr_floats = attr_floats;
  h.attr_dtype = [](const paddle_request* request, int32_t index) {
    const AttrValue* const a = attr(request, index);
    return a && a->is_dtype() ? c_dtype(a->as_dtype()) : paddle_dtype{0};
  };
  h.write = [](paddle_call* call, const char* text) {
    constexpr size_t kMaxText = size_t{1} << 28;
    const std::string_view more = text ? text : "";
    if (call->too_long || more.size() > kMaxText - call->text.size())
      call->too_long = true;
    else
      call->text += more;
  };
  return h;
}

}  // namespace

const paddle_host& host() {
  static const paddle_host table = make_host();
  return table;
}

void set_log(std::function<void(int level, const std::string& text)> sink) {
  const std::lock_guard lock(log_mutex);
  log_sink() = std::move(sink);
}

paddle_status set_error(paddle_call* call, paddle_status status, const std::string& message,
                        const SourceLocation& location) noexcept {
  if (!call) return status;
  call->status = status;
  call->message = message;
  for (char& c : call->message)
    if (c == '\n') c = ' ';
  call->location = location;
  return status;
}

void throw_status(const paddle_call& call, paddle_status status, const std::string& what) {
  ErrorCode code = ErrorCode::kInternal;
  for (const ErrorCode known : {ErrorCode::kUsage, ErrorCode::kConfig, ErrorCode::kData,
                                ErrorCode::kModel, ErrorCode::kDevice, ErrorCode::kPeer})
    if (static_cast<int>(known) == status) code = known;
  const std::string why = call.message.empty() ? str("failed with status ", status) : call.message;
  throw Error(code, what + ": " + why, call.location);
}

std::optional<DType> dtype_of_c(paddle_dtype dtype) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (const auto each = static_cast<DType>(i); dtype >= 0 && c_dtype(each) == dtype) return each;
  return std::nullopt;
}

paddle_dtype c_dtype(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return PADDLE_BOOL;
    case DType::kI8:
      return PADDLE_INT8;
    case DType::kI16:
      return PADDLE_INT16;
    case DType::kI32:
      return PADDLE_INT32;
    case DType::kI64:
      return PADDLE_INT64;
    case DType::kU8:
      return PADDLE_UINT8;
    case DType::kU16:
      return PADDLE_UINT16;
    case DType::kU32:
      return PADDLE_UINT32;
    case DType::kU64:
      return PADDLE_UINT64;
    case DType::kF16:
      return PADDLE_FLOAT16;
    case DType::kBF16:
      return PADDLE_BFLOAT16;
    case DType::kF32:
      return PADDLE_FLOAT32;
    case DType::kF64:
      return PADDLE_FLOAT64;
    case DType::kC64:
      return PADDLE_COMPLEX64;
    case DType::kC128:
      return PADDLE_COMPLEX128;
    case DType::kF8E4M3FN:
      return PADDLE_FLOAT8_E4M3;
    case DType::kF8E5M2:
      return PADDLE_FLOAT8_E5M2;
    default:
      return -1;
  }
}

}  // namespace paddle::plugin
