#pragma once
// Rules that rename, drop and transpose tensors, read from YAML:
//
//   - match: '^model\.layers\.(\d+)\.'     # every place in a name that the expression matches
//     rename: 'blocks.$1.'                 # $1 … are its groups, $& the whole match
//     add: -1                              # to groups that are numbers
//   - name: lm_head.weight                 # one tensor
//     rename: head.weight
//   - drop: '\.num_batches_tracked$'
//   - transpose: 'proj\.weight$'           # axes reversed, or in the order of `perm`
//     perm: [3, 2, 0, 1]
//
// Rules apply in order, each to the name that those before it gave.

#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace paddle::convert {

class Rules {
 public:
  /// Reads the file. kConfig with the place of what is wrong.
  static Rules read(const std::string& path);

  struct Outcome {
    std::string name;
    bool dropped = false;
    bool transposed = false;
    std::vector<int64_t> perm;  ///< of a transpose; empty: axes reversed
  };
  Outcome apply(const std::string& name);

  /// After all names: kConfig for an exact name that no tensor has; a line for each expression
  /// that matched nothing.
  std::vector<std::string> unused(const std::vector<std::string>& names) const;

 private:
  struct Rule {
    enum class Kind { kRename, kDrop, kTranspose };
    Kind kind = Kind::kRename;
    SourceLocation place;
    std::string pattern;  ///< the text of the expression, or the exact name
    bool exact = false;
    std::regex expression;
    std::string rename;
    int64_t add = 0;  ///< to the groups of a match that are numbers
    std::vector<int64_t> perm;
    bool used = false;
  };
  bool matches(const Rule& rule, const std::string& name) const;
  static std::string replaced(const std::string& name, const Rule& rule);
  std::vector<Rule> rules_;
};

/// The axes of a transpose for a tensor of this shape. kConfig if they do not fit.
std::vector<int64_t> axes_of(const Rules::Outcome& rule, const std::string& tensor, DType dtype,
                             const Dims& shape);
/// The array with its axes in this order, as a contiguous copy.
Array transposed(const Array& array, const std::vector<int64_t>& perm);

}  // namespace paddle::convert
