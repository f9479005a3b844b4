#pragma once
// The body of a request to /v1/predict: nested lists by input, rows of a table, or files, as JSON,
// as a form of a page (multipart/form-data), or as one file. Nothing here knows a model.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/nested_list.h"

namespace paddle::serve {

struct PredictRequest {
  enum class Kind : uint8_t { kNone, kInputs, kRows, kImages, kSounds, kNpz };
  Kind kind = Kind::kNone;
  std::string model;  ///< "": the request names none
  std::vector<std::pair<std::string, NestedList>> inputs;
  std::string rows;  ///< an object of JSON a line
  int64_t row_count = 0;
  std::vector<std::string> files;  ///< images or sounds, or one NPZ file
  /// Classes, labels and the like instead of the model's outputs, or the other way round; nullopt:
  /// not for `inputs` and NPZ files, for others yes.
  std::optional<bool> decode;
};

/// Reads a request. `type` is its Content-Type, and `query` the target's
/// ("model=NAME&decode=true"), which says what a file cannot. Throws ApiError for what is
/// malformed; memory stays within twenty times the size of the body.
PredictRequest read_predict_request(std::string_view type, std::string_view query,
                                    std::string_view body);

}  // namespace paddle::serve
