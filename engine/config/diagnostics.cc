#include "config/diagnostics.h"

#include <algorithm>
#include <string_view>

namespace paddle::config {

void Diagnostics::add(Error error) {
  constexpr size_t kMaxErrors = 100;
  if (errors_.size() >= kMaxErrors) return;
  const std::string_view what = error.what();
  const auto same = [&](const Error& other) { return what == other.what(); };
  if (std::none_of(errors_.begin(), errors_.end(), same)) errors_.push_back(std::move(error));
}

void Diagnostics::warn(std::string message, SourceLocation place) {
  const std::string where = place.text();
  warnings_.push_back(where.empty() ? message : where + ": " + message);
}

Error Diagnostics::combined() const {
  ensure(!errors_.empty(), "Diagnostics::combined without an error");
  std::vector<Error> sorted = errors_;
  // Files keep the order in which their first error came; inside one, lines lead.
  const auto file_rank = [&](const Error& error) {
    return std::find_if(errors_.begin(), errors_.end(), [&](const Error& other) {
      return other.location().file == error.location().file;
    });
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Error& a, const Error& b) {
    if (a.location().file != b.location().file) return file_rank(a) < file_rank(b);
    if (a.location().line != b.location().line) return a.location().line < b.location().line;
    return a.location().column < b.location().column;
  });
  Error first = sorted.front();
  for (size_t i = 1; i < sorted.size(); ++i) first.note(sorted[i].what());
  return first;
}

void Diagnostics::raise() const {
  if (!empty()) throw combined();
}

}  // namespace paddle::config
