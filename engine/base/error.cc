#include "base/error.h"

namespace paddle {

std::string SourceLocation::text() const {
  std::string out = file;
  if (line > 0) {
    if (!out.empty()) out += ':';
    out += std::to_string(line);
    if (column > 0) out += ':' + std::to_string(column);
  }
  return out;
}

void text_detail::fail(ErrorCode code, std::span<const Part> parts) {
  throw Error(code, concatenate(parts));
}

Error::Error(ErrorCode code, std::string message, SourceLocation place)
    : code_(code), message_(printable(message)), location_(std::move(place)) {
  compose();
}

Error& Error::note(std::string line) {
  notes_.push_back(std::move(line));
  compose();
  return *this;
}

void Error::compose() {
  what_ = location_.text();
  if (!what_.empty()) what_ += ": ";
  what_ += message_;
  for (const std::string& line : notes_) what_ += "\n" + line;
}

}  // namespace paddle
