#include "metrics/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "metrics/score_layout.h"

namespace paddle::metrics {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Options of a spec with their defaults.
class Settings {
 public:
  explicit Settings(const MetricSpec& spec) : spec_(spec), info_(find_metric(spec.name)) {
    if (!info_) fail(ErrorCode::kConfig, "unknown metric '", spec.name, "'");
    for (const auto& [name, value] : spec.options) {
      std::vector<std::string> names;
      for (const OptionInfo& o : info_->options) names.push_back(o.name);
      if (!find(name))
        fail(ErrorCode::kConfig, spec.name, ": unknown option '", name, "'",
             did_you_mean(name, names));
    }
  }
  std::optional<int64_t> integer(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<int64_t>(v) ? std::optional(std::get<int64_t>(v)) : std::nullopt;
  }
  std::optional<double> real(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<double>(v) ? std::optional(std::get<double>(v)) : std::nullopt;
  }
  bool flag(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<bool>(v) && std::get<bool>(v);
  }
  std::string choice(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<std::string>(v) ? std::get<std::string>(v) : "";
  }
  bool given(const std::string& name) const {
    const auto it = spec_.options.find(name);
    return it != spec_.options.end() && !std::holds_alternative<std::monostate>(it->second);
  }
  int64_t ignored() const { return integer("ignore_index").value_or(spec_.ignored_label); }
  const MetricSpec& spec() const { return spec_; }

 private:
  const OptionInfo* find(const std::string& name) const {
    const auto it = std::find_if(info_->options.begin(), info_->options.end(),
                                 [&](const OptionInfo& o) { return o.name == name; });
    return it == info_->options.end() ? nullptr : &*it;
  }
  OptionValue value(const std::string& name) const {
    if (given(name)) return spec_.options.at(name);
    const OptionInfo* option = find(name);
    return option ? option->fallback : OptionValue{};
  }
  MetricSpec spec_;
  const MetricInfo* info_;
};

/// A ratio of two sums.
class RatioMetric : public Metric {
 public:
  void reset() override { numerator_ = denominator_ = 0; }
  void merge(const Metric& other) override {
    const auto& o = dynamic_cast<const RatioMetric&>(other);
    numerator_ += o.numerator_;
    denominator_ += o.denominator_;
  }
  double result() const override { return denominator_ > 0 ? numerator_ / denominator_ : kNaN; }

 protected:
  double numerator_ = 0, denominator_ = 0;
};

/// Scores and labels of a classification, row by row; NaN scores make the result NaN.
class Classification : public Metric {
 public:
  explicit Classification(const MetricSpec& spec) : settings_(spec) {}
  void reset() override {
    rows_ = 0;
    has_nan_ = all_in_unit_ = false;
  }
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    const MetricSpec& spec = settings_.spec();
    const ScoreLayout layout =
        spec.layout ? *spec.layout
                    : score_layout(spec.name, to_shape(operands[0].shape),
                                   to_shape(operands[1].shape), settings_.integer("axis"),
                                   settings_.flag("multilabel"), ErrorCode::kData);
    const ScoreRows rows(spec.name, operands[0], operands[1], layout);
    begin(rows.classes(), rows.binary());
    std::vector<double> scores;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      const auto label = rows.label(i, settings_.ignored());
      if (!label) continue;
      rows.scores(i, scores);
      if (rows_++ == 0) all_in_unit_ = true;
      for (const double s : scores) {
        has_nan_ = has_nan_ || std::isnan(s);
        all_in_unit_ = all_in_unit_ && s >= 0 && s <= 1;
      }
      add(scores, *label, rows.binary());
    }
  }
  void merge(const Metric& other) override {
    const auto& o = dynamic_cast<const Classification&>(other);
    all_in_unit_ = o.rows_ == 0 ? all_in_unit_
                   : rows_ == 0 ? o.all_in_unit_
                                : all_in_unit_ && o.all_in_unit_;
    rows_ += o.rows_;
    has_nan_ = has_nan_ || o.has_nan_;
  }
  double result() const override { return rows_ == 0 || has_nan_ ? kNaN : value(); }

 protected:
  /// Called once for each batch, before its rows.
  virtual void begin(int64_t classes, bool binary) = 0;
  virtual void add(const std::vector<double>& scores, int64_t label, bool binary) = 0;
  virtual double value() const = 0;
  double threshold() const {
    if (const auto given = settings_.real("threshold")) return *given;
    switch (settings_.spec().scores) {
      case ScoreKind::kLogits:
        return 0;
      case ScoreKind::kProbabilities:
        return 0.5;
      case ScoreKind::kLogProbabilities:
        return std::log(0.5);
    }
    return 0;
  }
  /// For metrics that compare single scores with the threshold.
  std::string doubt_of_threshold(bool used) const {
    constexpr int64_t kEnough = 32;
    if (!used || !all_in_unit_ || rows_ < kEnough || settings_.given("threshold") ||
        settings_.spec().scores != ScoreKind::kLogits)
      return {};
    return settings_.spec().name +
           ": all scores lie in [0, 1] and are compared with the threshold of logits, 0; if they "
           "are probabilities, give threshold=0.5";
  }
  Settings settings_;

 private:
  int64_t rows_ = 0;
  bool has_nan_ = false, all_in_unit_ = false;
};

size_t arg_max(const std::vector<double>& scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

class Accuracy final : public Classification {
 public:
  explicit Accuracy(const MetricSpec& spec)
      : Classification(spec), k_(settings_.integer("k").value_or(1)) {
    if (k_ < 1) fail(ErrorCode::kConfig, "accuracy: k must be at least 1, found ", k_);
  }
  void reset() override {
    Classification::reset();
    right_ = counted_ = 0;
  }
  void merge(const Metric& other) override {
    Classification::merge(other);
    const auto& o = dynamic_cast<const Accuracy&>(other);
    right_ += o.right_;
    counted_ += o.counted_;
    binary_ = binary_ || o.binary_;
  }
  std::string doubt() const override { return doubt_of_threshold(binary_); }

 private:
  void begin(int64_t classes, bool binary) override {
    binary_ = binary;
    if (binary && k_ != 1)
      fail(ErrorCode::kConfig, "accuracy: k=", k_,
           " needs several classes, found one score per label");
    if (!binary && k_ > classes)
      fail(ErrorCode::kConfig, "accuracy: k=", k_, " exceeds the ", classes, " classes");
    if (!binary && settings_.given("threshold"))
      fail(ErrorCode::kConfig, "accuracy: threshold is for one score per label, found ", classes,
           " classes");
  }
  void add(const std::vector<double>& scores, int64_t label, bool binary) override {
    ++counted_;
    if (binary) {
      right_ += (scores[0] > threshold()) == (label == 1);
      return;
    }
    // The rank of the label: higher scores, and equal ones of lower classes.
    const auto own = static_cast<size_t>(label);
    int64_t above = 0;
    for (size_t c = 0; c < scores.size(); ++c)
      above += scores[c] > scores[own] || (scores[c] == scores[own] && c < own);
    right_ += above < k_;
  }
  double value() const override {
    return static_cast<double>(right_) / static_cast<double>(counted_);
  }
  int64_t k_, right_ = 0, counted_ = 0;
  bool binary_ = false;
};

/// Precision, recall and F1 from counts per class. With `average` over all classes that occur as a
/// label or a prediction, otherwise of one class.
class PrecisionRecall final : public Classification {
 public:
  enum class Kind { kPrecision, kRecall, kF1 };
  PrecisionRecall(const MetricSpec& spec, Kind kind)
      : Classification(spec),
        kind_(kind),
        average_(settings_.choice("average")),
        positive_(settings_.integer("positive").value_or(1)) {
    if (!average_.empty() && settings_.given("positive"))
      fail(ErrorCode::kConfig, spec.name, ": give either average or positive");
  }
  void reset() override {
    Classification::reset();
    counts_.clear();
  }
  void merge(const Metric& other) override {
    Classification::merge(other);
    const auto& o = dynamic_cast<const PrecisionRecall&>(other);
    counts_.resize(std::max(counts_.size(), o.counts_.size()));
    for (size_t c = 0; c < o.counts_.size(); ++c) counts_[c] += o.counts_[c];
    binary_ = binary_ || o.binary_;
  }
  std::string doubt() const override { return doubt_of_threshold(binary_); }

 private:
  struct Counts {
    double hits = 0, false_positives = 0, misses = 0;
    Counts& operator+=(const Counts& o) {
      hits += o.hits;
      false_positives += o.false_positives;
      misses += o.misses;
      return *this;
    }
    bool occurs() const { return hits + false_positives + misses > 0; }
  };

  void begin(int64_t classes, bool binary) override {
    binary_ = binary;
    const int64_t decisions = binary ? 2 : classes;
    const std::string& name = settings_.spec().name;
    if (decisions > 2 && average_.empty() && !settings_.given("positive"))
      fail(ErrorCode::kConfig, name, ": ", classes,
           " classes need average=\"macro\", \"micro\" or \"weighted\", or positive=<class>");
    if (!binary && settings_.given("threshold"))
      fail(ErrorCode::kConfig, name, ": threshold is for one score per label, found ", classes,
           " classes");
    if (positive_ < 0 || positive_ >= decisions)
      fail(ErrorCode::kConfig, name, ": positive=", positive_, " is not a class in 0 … ",
           decisions - 1);
    counts_.resize(std::max(counts_.size(), static_cast<size_t>(decisions)));
  }
  void add(const std::vector<double>& scores, int64_t label, bool binary) override {
    const size_t predicted = binary ? scores[0] > threshold() : arg_max(scores);
    const auto actual = static_cast<size_t>(label);
    if (predicted == actual) {
      ++counts_[actual].hits;
    } else {
      ++counts_[predicted].false_positives;
      ++counts_[actual].misses;
    }
  }
  double of(const Counts& c) const {
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0.0; };
    if (kind_ == Kind::kPrecision) return ratio(c.hits, c.hits + c.false_positives);
    if (kind_ == Kind::kRecall) return ratio(c.hits, c.hits + c.misses);
    return ratio(2 * c.hits, 2 * c.hits + c.false_positives + c.misses);
  }
  double value() const override {
    if (average_.empty()) return of(counts_[static_cast<size_t>(positive_)]);
    if (average_ == "micro") {
      Counts sum;
      for (const Counts& c : counts_) sum += c;
      return of(sum);
    }
    double sum = 0, weights = 0;
    for (const Counts& c : counts_) {
      if (!c.occurs()) continue;
      const double weight = average_ == "macro" ? 1 : c.hits + c.misses;
      sum += weight * of(c);
      weights += weight;
    }
    return weights > 0 ? sum / weights : kNaN;
  }
  Kind kind_;
  std::string average_;
  int64_t positive_;
  bool binary_ = false;
  std::vector<Counts> counts_;
};

/// Area under the ROC curve, exact: all scores are kept and ranked; ties share their rank. Several
/// classes: the mean over one-versus-rest curves of the probabilities.
class Auc final : public Classification {
 public:
  explicit Auc(const MetricSpec& spec)
      : Classification(spec), average_(settings_.choice("average")) {}
  void reset() override {
    Classification::reset();
    samples_.clear();
    labels_.clear();
  }
  void merge(const Metric& other) override {
    Classification::merge(other);
    const auto& o = dynamic_cast<const Auc&>(other);
    samples_.insert(samples_.end(), o.samples_.begin(), o.samples_.end());
    labels_.insert(labels_.end(), o.labels_.begin(), o.labels_.end());
    columns_ = std::max(columns_, o.columns_);
  }

 private:
  void begin(int64_t classes, bool binary) override {
    if (!binary && classes > 2 && average_.empty())
      fail(ErrorCode::kConfig, "auc: ", classes,
           " classes need average=\"macro\" or \"weighted\" (the mean over one class against the "
           "rest), found none");
    columns_ = binary || classes == 2 ? 1 : static_cast<size_t>(classes);
  }
  void add(const std::vector<double>& scores, int64_t label, bool binary) override {
    labels_.push_back(label);
    if (binary) {
      samples_.push_back(scores[0]);
    } else if (scores.size() == 2) {
      samples_.push_back(scores[1] - scores[0]);
    } else if (settings_.spec().scores == ScoreKind::kLogits) {
      double sum = 0;
      const double top = *std::max_element(scores.begin(), scores.end());
      for (const double s : scores) sum += std::exp(s - top);
      for (const double s : scores) samples_.push_back(std::exp(s - top) / sum);
    } else {
      samples_.insert(samples_.end(), scores.begin(), scores.end());
    }
  }
  /// Of column `c` for labels equal to `positive`; NaN if all or none are.
  double area(size_t c, int64_t positive) const {
    std::vector<std::pair<double, bool>> sorted;
    for (size_t i = 0; i < labels_.size(); ++i)
      sorted.emplace_back(samples_[i * columns_ + c], labels_[i] == positive);
    std::sort(sorted.begin(), sorted.end());
    double positives = 0, rank_sum = 0;
    for (size_t i = 0; i < sorted.size();) {
      size_t end = i;
      while (end < sorted.size() && sorted[end].first == sorted[i].first) ++end;
      const double rank = 0.5 * static_cast<double>(i + 1 + end);
      for (; i < end; ++i)
        if (sorted[i].second) {
          positives += 1;
          rank_sum += rank;
        }
    }
    const double negatives = static_cast<double>(sorted.size()) - positives;
    if (positives == 0 || negatives == 0) return kNaN;
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
  }
  double value() const override {
    if (columns_ == 1) return area(0, 1);
    double sum = 0, weights = 0;
    for (size_t c = 0; c < columns_; ++c) {
      const auto count =
          static_cast<double>(std::count(labels_.begin(), labels_.end(), static_cast<int64_t>(c)));
      const double weight = average_ == "macro" ? 1 : count;
      sum += weight * area(c, static_cast<int64_t>(c));  // NaN if the class does not occur
      weights += weight;
    }
    return sum / weights;
  }
  std::string average_;
  size_t columns_ = 1;
  std::vector<double> samples_;  ///< [rows, columns]
  std::vector<int64_t> labels_;
};

/// exp of the mean negative log probability of the labels.
class Perplexity final : public Classification {
 public:
  using Classification::Classification;
  void reset() override {
    Classification::reset();
    sum_ = counted_ = 0;
  }
  void merge(const Metric& other) override {
    Classification::merge(other);
    const auto& o = dynamic_cast<const Perplexity&>(other);
    sum_ += o.sum_;
    counted_ += o.counted_;
  }

 private:
  void begin(int64_t /*classes*/, bool binary) override {
    if (binary)
      fail(ErrorCode::kConfig,
           "perplexity needs the scores of several classes, found one per label");
  }
  void add(const std::vector<double>& scores, int64_t label, bool /*binary*/) override {
    const double own = scores[static_cast<size_t>(label)];
    counted_ += 1;
    if (settings_.spec().scores == ScoreKind::kProbabilities) {
      sum_ -= std::log(own);
      return;
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double s : scores) sum += std::exp(s - top);
    sum_ += std::log(sum) + (top - own);
  }
  double value() const override { return std::exp(sum_ / counted_); }
  double sum_ = 0, counted_ = 0;
};

/// Mean absolute error, or the root of the mean squared one.
class MeanError final : public RatioMetric {
 public:
  MeanError(const MetricSpec& spec, bool squared) : name_(spec.name), squared_(squared) {}
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    check_shapes(name_, to_shape(operands[0].shape), to_shape(operands[1].shape), ErrorCode::kData);
    const Array a = operands[0].cast(DType::kF64).contiguous();
    const Array b = operands[1].cast(DType::kF64).contiguous();
    for (int64_t i = 0; i < a.size(); ++i) {
      const double d = a.data<double>()[i] - b.data<double>()[i];
      numerator_ += squared_ ? d * d : std::abs(d);
    }
    denominator_ += static_cast<double>(a.size());
  }
  double result() const override {
    const double mean = RatioMetric::result();
    return squared_ ? std::sqrt(mean) : mean;
  }
  /// Equal but for axes of size 1.
  static void check_shapes(const std::string& name, const Shape& a, const Shape& b,
                           ErrorCode code) {
    const auto flat = [](const Shape& s) {
      Shape out;
      for (size_t i = 0; i < s.size(); ++i)
        if (i == 0 || s[i].constant() != 1) out.push_back(s[i]);
      return out;
    };
    const Shape x = flat(a), y = flat(b);
    bool same = x.size() == y.size();
    for (size_t i = 0; same && i < x.size(); ++i) same = x[i].equals(y[i]) != false;
    if (!same)
      fail(code, name, ": input ", text(a), " and label ", text(b),
           " must have the same shape, except for axes of size 1");
  }

 private:
  std::string name_;
  bool squared_;
};

/// Mean of a tensor's elements, for any quantity that the expression computes. A value of the whole
/// batch counts by the batch's samples.
class Average final : public RatioMetric {
 public:
  explicit Average(const MetricSpec& spec) : per_sample_(spec.per_sample) {}
  void update(const std::vector<Array>& operands, int64_t samples) override {
    const Array a = operands[0].cast(DType::kF64).contiguous();
    const double weight = per_sample_ ? 1 : static_cast<double>(samples);
    for (int64_t i = 0; i < a.size(); ++i) numerator_ += weight * a.data<double>()[i];
    denominator_ += weight * static_cast<double>(a.size());
  }

 private:
  bool per_sample_;
};

const OptionInfo kAxis = {"axis", OptionKind::kInteger, {}, {}};
const OptionInfo kIgnore = {"ignore_index", OptionKind::kInteger, {}, {}};
const OptionInfo kThreshold = {"threshold", OptionKind::kReal, {}, {}};
const OptionInfo kMultilabel = {"multilabel", OptionKind::kBool, false, {}};
const OptionInfo kPositive = {"positive", OptionKind::kInteger, {}, {}};
const OptionInfo kAverage = {"average", OptionKind::kChoice, {}, {"macro", "micro", "weighted"}};
const OptionInfo kAucAverage = {"average", OptionKind::kChoice, {}, {"macro", "weighted"}};

}  // namespace

const std::vector<MetricInfo>& metric_infos() {
  using D = Direction;
  static const std::vector<std::string> kPair = {"input", "label"};
  static const std::vector<OptionInfo> kRates = {kThreshold, kPositive, kAverage,
                                                 kAxis,      kIgnore,   kMultilabel};
  static const std::vector<MetricInfo> kInfos = {
      {"accuracy",
       "Share of labels among the k highest scores.",
       kPair,
       {{"k", OptionKind::kInteger, int64_t{1}, {}}, kThreshold, kAxis, kIgnore, kMultilabel},
       D::kHigher},
      {"auc",
       "Area under the ROC curve, exact.",
       kPair,
       {kAucAverage, kAxis, kIgnore, kMultilabel},
       D::kHigher},
      {"precision", "Share of predicted positives that are right.", kPair, kRates, D::kHigher},
      {"recall", "Share of positives that are predicted.", kPair, kRates, D::kHigher},
      {"f1", "Harmonic mean of precision and recall.", kPair, kRates, D::kHigher},
      {"mae", "Mean absolute error.", kPair, {}, D::kLower},
      {"rmse", "Root of the mean squared error.", kPair, {}, D::kLower},
      {"perplexity", "exp of the mean cross entropy.", kPair, {kIgnore, kAxis}, D::kLower},
      {"average", "Mean of a tensor's elements.", {"input"}, {}, D::kUnknown},
  };
  return kInfos;
}

const MetricInfo* find_metric(const std::string& name) {
  for (const MetricInfo& m : metric_infos())
    if (m.name == name) return &m;
  return nullptr;
}

std::unique_ptr<Metric> make_metric(const MetricSpec& spec) {
  const Settings settings(spec);  // checks name and options
  std::unique_ptr<Metric> out;
  if (spec.name == "accuracy")
    out = std::make_unique<Accuracy>(spec);
  else if (spec.name == "auc")
    out = std::make_unique<Auc>(spec);
  else if (spec.name == "mae" || spec.name == "rmse")
    out = std::make_unique<MeanError>(spec, spec.name == "rmse");
  else if (spec.name == "perplexity")
    out = std::make_unique<Perplexity>(spec);
  else if (spec.name == "average")
    out = std::make_unique<Average>(spec);
  else
    out = std::make_unique<PrecisionRecall>(
        spec, spec.name == "precision" ? PrecisionRecall::Kind::kPrecision
              : spec.name == "recall"  ? PrecisionRecall::Kind::kRecall
                                       : PrecisionRecall::Kind::kF1);
  return out;
}

void resolve_operands(MetricSpec& spec, const std::vector<TensorType>& operands) {
  const Settings settings(spec);
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].dtype == DType::kString || is_complex(operands[i].dtype))
      fail(ErrorCode::kConfig, spec.name, ": ", find_metric(spec.name)->operands[i], " is ",
           operands[i], "; expected numbers");
  if (spec.name == "average") return;
  if (!spec.per_sample)
    fail(ErrorCode::kConfig, spec.name, ": needs values of single samples, found input ",
         operands[0], " and label ", operands[1], ", which have no batch axis");
  if (spec.name == "mae" || spec.name == "rmse") {
    MeanError::check_shapes(spec.name, operands[0].shape, operands[1].shape, ErrorCode::kConfig);
    return;
  }
  spec.layout =
      score_layout(spec.name, operands[0].shape, operands[1].shape, settings.integer("axis"),
                   settings.flag("multilabel"), ErrorCode::kConfig);
}

}  // namespace paddle::metrics
