#include "base/error.h"

namespace paddle {

std::string Place::text() const {
  std::string out = file;
  if (line > 0) {
    if (!out.empty()) out += ':';
    out += std::to_string(line);
    if (column > 0) out += ':' + std::to_string(column);
  }
  return out;
}

Error::Error(ErrorCode code, std::string message, Place place)
    : code_(code), message_(std::move(message)), place_(std::move(place)) {
  compose();
}

Error& Error::note(std::string line) {
  notes_.push_back(std::move(line));
  compose();
  return *this;
}

void Error::compose() {
  what_ = place_.text();
  if (!what_.empty()) what_ += ": ";
  what_ += message_;
  for (const std::string& line : notes_) what_ += "\n" + line;
}

}  // namespace paddle
