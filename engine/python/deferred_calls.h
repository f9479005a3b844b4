#pragma once
// The calls that a function defers, for lazy.cc: each function has a tree of the calls that it
// made. A call that was made before at the same place follows its branch without type inference. A
// sequence of calls that is needed a second time, with the same results in use, is compiled.

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "python/compiled_graph.h"
#include "python/trace.h"

namespace paddle::python {

inline constexpr size_t kMaxCalls = 2000;  ///< deferred at a time
inline constexpr size_t kMaxNodes = 4096;  ///< of a function, which then computes at once
inline constexpr size_t kMaxNoted = 1000;
inline constexpr int64_t kMaxConstantBytes = 64;  ///< larger ones are inputs

inline bool is_small(const Array& array) {
  return storage_bytes(array.dtype, array.size()) <= kMaxConstantBytes;
}

/// An operand of a deferred call. A small one that is of no Python object is a constant.
struct Operand {
  enum class Kind : uint8_t { kAbsent, kInput, kResult, kConstant };
  Kind kind = Kind::kAbsent;
  size_t index = 0;  ///< of the input, or among all results
  bool requires_grad = false;
  TensorType type = {};  ///< kInput
  Array constant = {};   ///< kConstant
  Tensor value = {};     ///< kInput, while it is matched

  bool is_same(const Operand& other) const {
    if (kind != other.kind || index != other.index || requires_grad != other.requires_grad)
      return false;
    if (kind == Kind::kInput) return same_type(type, other.type);
    if (kind != Kind::kConstant) return true;
    return constant.dtype == other.constant.dtype && constant.shape == other.constant.shape &&
           std::memcmp(constant.raw(), other.constant.raw(), bytes()) == 0;
  }
  size_t bytes() const {
    return static_cast<size_t>(storage_bytes(constant.dtype, constant.size()));
  }
};

/// A call at its place in a function.
struct Node {
  Node* before = nullptr;
  const Op* op = nullptr;
  Attrs attrs = {};
  std::vector<Operand> operands = {};
  bool is_recorded = false;
  std::string location = {};
  std::vector<std::shared_ptr<const TensorType>> results = {};
  std::vector<bool> requires_grad = {};  ///< of each result
  std::vector<std::unique_ptr<Node>> after = {};
  /// Compiled functions of all calls up to here, by the results that are in use; null where they
  /// were computed once.
  std::map<std::vector<size_t>, std::unique_ptr<CompiledGraph>> graphs = {};
  bool compiles = true;

  bool takes_gradients() const {
    return std::any_of(operands.begin(), operands.end(),
                       [](const Operand& each) { return each.requires_grad; });
  }
  bool is_call(const Op& its_op, const Attrs& its_attrs, const std::vector<Operand>& its_operands,
               bool recorded) const {
    return op == &its_op && is_recorded == recorded && operands.size() == its_operands.size() &&
           std::equal(operands.begin(), operands.end(), its_operands.begin(),
                      [](const Operand& a, const Operand& b) { return a.is_same(b); }) &&
           attrs == its_attrs;
  }
};

/// The calls of a function.
struct Segments {
  bool exact = false;
  std::mutex mutex;
  Node root;
  std::atomic<size_t> nodes = 0;
};

class Recording;

/// The result of a deferred call.
struct Deferred : Content {
  std::shared_ptr<Recording> recording;
  size_t index = 0;
  std::shared_ptr<Content> record;       ///< null if it requires no gradient
  std::shared_ptr<const Content> value;  ///< when it is computed
  mutable std::atomic<bool> is_computed = false;

  const Array* concrete() const override;
};

inline const Deferred* deferred_content(const Tensor& tensor) {
  return tensor.defined() ? dynamic_cast<const Deferred*>(tensor.content().get()) : nullptr;
}

inline bool is_pending(const Content* content) {
  const auto* const deferred = dynamic_cast<const Deferred*>(content);
  return deferred && !deferred->is_computed;
}

/// Calls from the last needed value to the next one.
class Recording : public std::enable_shared_from_this<Recording> {
 public:
  explicit Recording(std::shared_ptr<Segments> segments)
      : segments_(std::move(segments)), at_(&segments_->root) {}

  bool is_over() const { return is_over_; }
  size_t calls() const { return calls_; }
  /// The results of a call that was made at this place before; false if there was none, or if the
  /// recording is over.
  bool follow(const Op& op, const Attrs& attrs, std::vector<Operand>& operands, Tensors& results);
  /// The results of one that was not; none if the recording is over.
  Tensors add(const OpCall& call, std::vector<Operand> operands, std::string location);
  /// How an operand is known again. `noted`: whether it is that of a Python object.
  Operand operand(const Tensor& tensor, bool noted) const;
  /// Gives operands that are new the next indices of inputs.
  void number(std::vector<Operand>& operands) const;
  /// Computes the results that are in use. Errors come again with each use of a result.
  void run();

 private:
  Tensors results_of(const Node& node, std::vector<Operand>& operands);
  std::vector<const Node*> path() const;
  Tensors compute_eagerly(const std::vector<const Node*>& path) const;
  std::unique_ptr<CompiledGraph> compile(const std::vector<const Node*>& path,
                                         const std::vector<size_t>& used) const;
  /// The values of the results in use, by number.
  Tensors computed(const std::vector<size_t>& used);

  std::shared_ptr<Segments> segments_;
  std::mutex mutex_;
  Node* at_;
  size_t calls_ = 0;
  Tensors inputs_;
  std::unordered_map<const Content*, size_t> input_numbers_;
  std::vector<std::shared_ptr<Deferred>> results_;
  std::vector<bool> requires_grad_;
  std::atomic<bool> is_over_ = false;
  std::exception_ptr error_;
};

}  // namespace paddle::python
