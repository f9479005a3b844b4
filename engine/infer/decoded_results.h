#pragma once
// Writer of decoded predictions (infer/decoder.h): JSON lines, CSV, a folder of pictures, or a line
// of text for each row.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "infer/decoder.h"
#include "infer/results.h"

namespace paddle::infer {

class DecodedResults {
 public:
  virtual ~DecodedResults() = default;
  /// `decoded` has one element per row; none for a batch of skipped rows only.
  virtual void add(const InputBatch& batch, const std::vector<Decoded>& decoded) = 0;
  virtual void close() = 0;
};

/// By the ending of the file, .csv or .jsonl; "" reports lines by `line`. The decoder writes
/// pictures into a folder, for which lines are reported as well. kUsage for other names.
std::unique_ptr<DecodedResults> open_decoded(Decoder& decoder, const std::string& path,
                                             ShownColumns shown,
                                             const std::function<void(const std::string&)>& line);
/// A JSON object for each row, as in a .jsonl file, to `line`.
std::unique_ptr<DecodedResults> json_decoded(ShownColumns shown,
                                             const std::function<void(const std::string&)>& line);

}  // namespace paddle::infer
