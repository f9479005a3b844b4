// Where right items stand among all when they are sorted by their scores. Items of equal scores
// count as above the right ones, so that scores that are all alike earn nothing.

#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

/// The mean over rows with one label each.
class LabelRank final : public Classification {
 public:
  explicit LabelRank(const MetricSpec& spec)
      : Classification(spec), k_(settings_.integer("k").value_or(0)) {
    if (spec.name == "hits" && k_ < 1)
      fail(ErrorCode::kConfig, "hits: k must be at least 1, found ", k_);
  }

 private:
  void begin(int64_t /*classes*/, bool binary) override {
    if (binary)
      fail(ErrorCode::kConfig, settings_.spec().name,
           " needs the scores of several items, found one per label");
  }
  void add(const std::vector<double>& scores, int64_t label, bool /*binary*/) override {
    const auto own = static_cast<size_t>(label);
    int64_t rank = 1;
    for (size_t i = 0; i < scores.size(); ++i) rank += i != own && scores[i] >= scores[own];
    if (k_ > 0)
      state_.sum(0) += rank <= k_ ? 1.0 : 0.0;
    else
      state_.sum(0) += 1 / static_cast<double>(rank);
  }
  double value() const override { return state_.sum(0) / static_cast<double>(rows()); }
  int64_t k_;  ///< 0: reciprocal ranks
};

/// The mean over rows with any number of relevant items; rows without any are not counted.
class SetRank final : public Metric {
 public:
  explicit SetRank(const MetricSpec& spec)
      : name_(spec.name), k_(Settings(spec).integer("k").value_or(10)) {
    if (k_ < 1) fail(ErrorCode::kConfig, name_, ": k must be at least 1, found ", k_);
  }
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    check_ranking_shapes(name_, to_shape(operands[0].shape), to_shape(operands[1].shape),
                         ErrorCode::kData);
    const Array scores = operands[0].cast(DType::kF64).contiguous();
    const Array relevant = operands[1].cast(DType::kF64).contiguous();
    const int64_t items = scores.shape.back(), rows = items == 0 ? 0 : scores.size() / items;
    std::vector<std::pair<double, bool>> order(static_cast<size_t>(items));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t total = 0, nans = 0;
      for (int64_t i = 0; i < items; ++i) {
        const double score = scores.data<double>()[row * items + i];
        const double mark = relevant.data<double>()[row * items + i];
        if (mark != 0 && mark != 1)
          fail(ErrorCode::kData, name_, ": relevant items are marked by 0 and 1, found ", mark);
        nans += std::isnan(score);
        total += mark == 1;
        order[static_cast<size_t>(i)] = {-score, mark == 1};
      }
      state_.count(kSeen, kNaNs) += nans;
      if (total == 0 || nans > 0) continue;
      const int64_t first = std::min(k_, items);
      std::partial_sort(order.begin(), order.begin() + first, order.end());
      add(order, first, total);
    }
  }
  double result() const override {
    const int64_t rows = state_.count(kSeen, kRows);
    if (rows == 0 || state_.count(kSeen, kNaNs) > 0) return kNaN;
    return state_.sum(0) / static_cast<double>(rows);
  }

 private:
  enum Group : size_t { kSeen };
  enum Entry : size_t { kRows, kNaNs };

  void add(const std::vector<std::pair<double, bool>>& order, int64_t first, int64_t total) {
    double found = 0, best = 0;
    for (int64_t i = 0; i < first; ++i) {
      const double gain = name_ == "ndcg" ? 1 / std::log2(static_cast<double>(i) + 2) : 1;
      if (order[static_cast<size_t>(i)].second) found += gain;
      if (i < total) best += gain;
    }
    // Recall counts all relevant items, of which no more than k can be found.
    if (name_ == "recall_at_k") best = static_cast<double>(total);
    state_.sum(0) += found / best;
    ++state_.count(kSeen, kRows);
  }
  std::string name_;
  int64_t k_;
};

}  // namespace

void check_ranking_shapes(const std::string& name, const Shape& scores, const Shape& relevant,
                          ErrorCode code) {
  bool same = scores.size() == relevant.size() && !scores.empty();
  for (size_t d = 0; same && d < scores.size(); ++d) same = scores[d].equals(relevant[d]) != false;
  if (!same)
    fail(code, name, ": expected scores [..., items] and as many marks of relevant items, found ",
         text(scores), " and ", text(relevant));
}

std::unique_ptr<Metric> make_ranking(const MetricSpec& spec) {
  if (spec.name == "mrr" || spec.name == "hits") return std::make_unique<LabelRank>(spec);
  if (spec.name == "recall_at_k" || spec.name == "ndcg") return std::make_unique<SetRank>(spec);
  return nullptr;
}

}  // namespace paddle::metrics
