#include "decoding/stop_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace paddle::decoding {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::any_of(stops_.begin(), stops_.end(), [](const auto& stop) { return stop.empty(); }))
    fail(ErrorCode::kUsage, "a stop text is empty");
}

std::string StopFilter::add(const std::string& piece) {
  if (stopped_) return "";
  const size_t searched = held_.size();
  held_ += piece;
  const std::string_view text = held_;
  for (size_t end = searched + 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops_)
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest == 0) continue;
    stopped_ = true;
    std::string out = held_.substr(0, end - longest);
    held_.clear();
    return out;
  }
  size_t kept = 0;  // the longest end of the text that begins a stop text
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, text.size()); n > kept; --n)
      if (text.ends_with(std::string_view(stop).substr(0, n))) kept = n;
  std::string out = held_.substr(0, held_.size() - kept);
  held_.erase(0, out.size());
  return out;
}

std::string StopFilter::finish() { return std::exchange(held_, ""); }

}  // namespace paddle::decoding
