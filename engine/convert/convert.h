#pragma once
// The job of paddle-convert: weights from one kind of file into another, tensor by tensor, with
// new names, types and axes where that is asked for. Nothing is lost without a word.

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace paddle::convert {

struct Options {
  std::string in, out;
  std::string from, to;                    ///< formats; empty: as the names say
  std::string rules;                       ///< a YAML file, or empty
  std::vector<std::string> dtypes;         ///< "TYPE" or "PATTERN=TYPE"; later ones lead
  std::vector<std::string> only, exclude;  ///< patterns of names in the source
  std::string shard_size;                  ///< "2GB"
  bool dry_run = false, overwrite = false, allow_loss = false;
  bool resume = false;  ///< continue an interrupted conversion to shards
};

/// The user asked to stop. Finished shards are kept for `resume`.
class Interrupted : public Error {
 public:
  explicit Interrupted(bool can_resume)
      : Error(ErrorCode::kDifference, "interrupted"), can_resume_(can_resume) {}
  bool can_resume() const { return can_resume_; }

 private:
  bool can_resume_;
};

/// Where lines go: what was done, and what the user should know of.
struct Printer {
  std::function<void(const std::string&)> line, warning;
  /// Asked before each tensor; true ends with Interrupted. May be empty.
  std::function<bool()> should_stop = nullptr;
};

struct Summary {
  std::string output;   ///< the file that was written: of several, the index
  int64_t tensors = 0;  ///< of a program, its constants
  uint64_t bytes = 0;
  bool is_program = false;
};

/// With `dry_run` everything is checked and nothing is written.
Summary run(const Options& options, const Printer& printer);

/// "2GB", "500MiB", "1000000" in bytes. kUsage.
uint64_t parse_size(const std::string& text);

}  // namespace paddle::convert
