#pragma once
// Metrics as accumulators: `update` consumes the operands of one batch, `merge` joins what another
// process or shard has seen, `result` is the value over everything seen. What they keep is a
// MetricState of counts, exact sums and lists, so neither the batch size nor the number of
// processes changes a bit of the value.
//
// A metric computes what its definition covers and rejects everything else: operands of other
// shapes, labels out of range, class labels for an option that is meant for binary decisions.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/registry.h"
#include "metrics/metric_state.h"
#include "tensor/tensor.h"

namespace paddle::metrics {

/// Which value of a metric is better. `kUnknown`: the config must say.
enum class Direction { kUnknown, kHigher, kLower };

enum class OptionKind { kInteger, kReal, kBool, kChoice, kIntegers };
using OptionValue =
    std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>>;
using Options = std::map<std::string, OptionValue>;

struct OptionInfo {
  std::string name;
  OptionKind kind = OptionKind::kInteger;
  OptionValue fallback = {};  ///< none: derived from the operands
  std::vector<std::string> choices = {};
};

/// The kind of scores, as far as the trace shows. Decides the default threshold.
enum class ScoreKind { kLogits, kProbabilities, kLogProbabilities };

/// How scores and labels correspond. Scores are read as [outer, classes, inner] and labels as
/// [outer, inner], both in row-major order.
struct ScoreLayout {
  int64_t axis = -1;    ///< the class axis of the scores; -1: one score per label
  bool binary = false;  ///< each score is a decision of its own
};

/// A metric bound to its operands.
struct MetricSpec {
  std::string name;
  Options options = {};  ///< those that were given
  ScoreKind scores = ScoreKind::kLogits;
  /// Labels with this value are not counted, unless the option `ignore_index` says otherwise.
  int64_t ignored_label = -100;
  /// Whether elements of the operands belong to single samples. Otherwise the operand is a value of
  /// the whole batch, and a batch counts by its samples.
  bool per_sample = true;
  std::optional<ScoreLayout> layout = {};  ///< set by resolve_operands
};

class Metric {
 public:
  virtual ~Metric() = default;
  void reset() { state_.clear(); }
  /// Operands in the order of the signature, of a batch of `samples`. Throws kData for values and
  /// shapes that the metric is not defined for.
  virtual void update(const std::vector<Array>& operands, int64_t samples) = 0;
  /// Adds the state of another accumulator of the same spec.
  void merge(const MetricState& other) { state_.merge(other); }
  const MetricState& state() const { return state_; }
  MetricState& state() { return state_; }
  /// NaN where the metric is not defined: nothing was counted, a score is NaN, AUC of one class.
  virtual double result() const = 0;
  /// The same of a metric whose value is a vector.
  virtual std::vector<double> results() const { return {result()}; }
  /// Whether samples may be divided among many states, for intervals; not where each is large.
  virtual bool divides() const { return true; }
  /// A warning about the result, such as logits that all look like probabilities; or "".
  virtual std::string warning() const { return {}; }

 protected:
  MetricState state_;
};

/// A metric of texts. It is given the texts that tokens stand for, not the tokens.
class TextMetric : public Metric {
 public:
  /// The text of a sample, and the one that is right.
  virtual void add(const std::string& text, const std::string& reference) = 0;
  void update(const std::vector<Array>& operands, int64_t samples) final;
};

/// A metric as one object: its signature (operands first, then options, by position or by name),
/// and what makes its accumulator.
struct MetricInfo {
  std::string name = {};
  std::string doc = {};
  std::vector<std::string> operands = {};
  std::vector<OptionInfo> options = {};
  Direction direction = Direction::kUnknown;
  bool is_reduction = false;  ///< a state of metrics of one's own; not a metric in itself
  /// Whether operands are the tokens of texts, which TextMetric compares as the texts that they
  /// stand for.
  bool compares_texts = false;
  /// Whether the elements of operands need not belong to single samples.
  bool takes_batch_values = false;
  /// Whether a further operand may be given by the name `mask`, after the others: labels where it
  /// is 0 are not counted.
  bool takes_mask = false;
  /// The option whose choices are all given, each as a metric of its own, where a config does not
  /// choose; "" if there is none.
  std::string splits_by = {};
  /// The accumulator, for options that are known; kConfig for values that do not fit each other.
  std::function<std::unique_ptr<Metric>(const MetricSpec&)> make = {};
  /// Checks the types of the operands, kConfig, and settles from them what the accumulator needs;
  /// none: it takes any numbers.
  std::function<void(MetricSpec&, const std::vector<TensorType>&)> resolve = {};
};

/// All metrics and reductions; more may be added while the program runs.
Registry<MetricInfo>& metric_registry();
/// Null if there is none.
std::shared_ptr<const MetricInfo> find_metric(const std::string& name);

/// The name of an operand: one of the signature, or the mask.
std::string operand_name(const MetricInfo& info, size_t operand);

/// Checks the options (kConfig) and makes the accumulator. That of a metric with `compares_texts`
/// is a TextMetric.
std::unique_ptr<Metric> make_metric(const MetricSpec& spec);

/// Which axes a reduction over `axes` (without them: all) keeps. `code` for axes out of range.
std::vector<bool> kept_axes(const std::string& name, const Shape& shape,
                            const std::optional<std::vector<int64_t>>& axes, ErrorCode code);

/// Settles from the types of the operands, as far as they are known, what the accumulator will
/// need; kConfig if the metric is not defined for them.
void resolve_operands(MetricSpec& spec, const std::vector<TensorType>& operands);

}  // namespace paddle::metrics
