// The area under the ROC curve of each user's samples, averaged over the users who have samples of
// both labels.

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

class UserArea final : public Classification {
 public:
  explicit UserArea(const MetricSpec& spec)
      : Classification(spec), by_user_(settings_.choice("average") == "macro") {}
  void update(const std::vector<Array>& operands, int64_t samples) override {
    if (operands[2].size() != operands[1].size())
      fail(ErrorCode::kData, "wuauc: ", operands[2].size(), " users for ", operands[1].size(),
           " labels");
    users_ = (operands[2].dtype == DType::kU64 ? operands[2] : operands[2].cast(DType::kI64))
                 .contiguous();
    Classification::update(operands, samples);
  }

 private:
  /// Users and scores of labels 0, then the same of labels 1. Users are the bits of their numbers.
  static constexpr size_t kUsers = 0, kScores = 1, kLists = 2;

  struct Sample {
    int64_t user;
    double score;
    bool is_positive;
  };

  void begin(int64_t /*classes*/, bool binary) override {
    if (!binary)
      fail(ErrorCode::kConfig, "wuauc: expected one score for each label, found several classes");
  }
  void add(const std::vector<double>& scores, int64_t label, bool /*binary*/) override {
    const size_t first = label == 1 ? kLists : 0;
    state_.list(first + kUsers)
        .push_back(std::bit_cast<double>(static_cast<const int64_t*>(users_.raw())[row_]));
    state_.list(first + kScores).push_back(scores[0]);
  }
  std::vector<Sample> sorted() const {
    std::vector<Sample> out;
    for (const bool is_positive : {false, true}) {
      const size_t first = is_positive ? kLists : 0;
      const auto users = state_.list(first + kUsers), scores = state_.list(first + kScores);
      for (size_t i = 0; i < users.size(); ++i)
        out.push_back({std::bit_cast<int64_t>(users[i]), scores[i], is_positive});
    }
    std::sort(out.begin(), out.end(), [](const Sample& a, const Sample& b) {
      return std::tie(a.user, a.score) < std::tie(b.user, b.score);
    });
    return out;
  }
  double value() const override {
    const std::vector<Sample> samples = sorted();
    ExactSum areas;
    double weights = 0;
    for (size_t i = 0; i < samples.size();) {
      const size_t first = i;
      double won = 0, negatives = 0, positives = 0;
      while (i < samples.size() && samples[i].user == samples[first].user) {
        const double score = samples[i].score;
        double no = 0, yes = 0;
        for (; i < samples.size() && samples[i].user == samples[first].user &&
               samples[i].score == score;
             ++i)
          ++(samples[i].is_positive ? yes : no);
        won += yes * (negatives + 0.5 * no);
        negatives += no;
        positives += yes;
      }
      if (negatives == 0 || positives == 0) continue;
      const double weight = by_user_ ? 1 : negatives + positives;
      areas += weight * (won / (negatives * positives));
      weights += weight;
    }
    return weights > 0 ? areas.parts()[0] / weights : kNaN;
  }

  bool by_user_;  ///< whether users count alike; else by their samples
  Array users_;   ///< of the batch: 64 bits each
};

}  // namespace

std::unique_ptr<Metric> make_user_area(const MetricSpec& spec) {
  return std::make_unique<UserArea>(spec);
}

}  // namespace paddle::metrics
