#pragma once
// Stop texts: generation ends before the first of them.

#include <string>
#include <vector>

namespace paddle::decoding {

/// Passes generated text through until one of the stop texts is complete. Text that may be the
/// beginning of a stop text is held back, so the result does not depend on how it is cut into
/// pieces.
class StopFilter {
 public:
  /// kUsage if a stop text is empty.
  explicit StopFilter(std::vector<std::string> stops);
  /// The text that is now known to come before any stop text.
  std::string add(const std::string& piece);
  /// The text that was held back, at the end of generation.
  std::string finish();
  bool is_stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace paddle::decoding
