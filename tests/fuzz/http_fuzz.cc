// Bytes of a connection, after a byte that says in which pieces they arrive: the requests must not
// depend on the pieces. Bodies for /v1/predict are read as such, whatever type they have.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fuzz/fuzz_target.h"
#include "serve/api_error.h"
#include "serve/http_reader.h"
#include "serve/predict_request.h"

namespace {

using namespace paddle::serve;

/// Reads the body of a prediction, and its lists as arrays of several types.
void read_prediction(const HttpRequest& request) {
  PredictRequest read;
  try {
    read = read_predict_request(request.header("content-type"), request.query, request.body);
  } catch (const ApiError&) {
    return;
  }
  size_t bytes = read.rows.size();
  for (const std::string& file : read.files) bytes += file.size();
  // A row may have escapes in place of control characters.
  if (bytes > 8 * request.body.size() + 64) std::abort();
  for (const auto& [name, list] : read.inputs) {
    const int64_t count = paddle::element_count(std::span<const int64_t>(list.shape));
    const size_t held = list.integers.size() + list.numbers.size() + list.strings.size();
    if (count != static_cast<int64_t>(held)) std::abort();
    for (const auto dtype : {paddle::DType::kF32, paddle::DType::kI8, paddle::DType::kU64,
                             paddle::DType::kBool, paddle::DType::kBF16}) {
      try {
        if (to_array(list, dtype, name).size() != count) std::abort();
      } catch (const ApiError&) {
        continue;
      }
    }
  }
}

/// All requests of a connection, and how it ends, as a text.
std::string read_all_requests(std::string_view bytes, size_t piece) {
  const HttpLimits limits{.head = 2048, .body = 8192};
  std::string out, buffer;
  try {
    HttpReader reader(limits);
    for (size_t at = 0; at < bytes.size(); at += piece) {
      buffer += bytes.substr(at, piece);
      while (reader.take(buffer)) {
        const HttpRequest& request = reader.request();
        if (request.body.size() > limits.body) std::abort();
        if (request.path == "/v1/predict") read_prediction(request);
        out += request.method + " " + request.path + " " + request.query + " " +
               host_name(request.header("host")) + " " +
               (reader.keep_alive() ? "keep " : "close ") + request.body + "\n";
        for (const auto& [name, value] : request.headers) out += name + ": " + value + "\n";
        reader = HttpReader(limits);
      }
      if (buffer.size() > limits.head + piece + 4) std::abort();
    }
  } catch (const HttpError& rejection) {
    out += std::to_string(rejection.status);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 1 << 16) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = read_all_requests(bytes, std::max<size_t>(bytes.size(), 1));
  if (read_all_requests(bytes, size_t{data[0]} + 1) != whole) {
    std::fprintf(stderr, "the requests depend on the pieces in which they arrive\n");
    std::abort();
  }
  return 0;
}
