// Beam search against all sequences of a small model, and its bounds.

#include "infer/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tensor/random.h"

namespace paddle::infer {
namespace {

constexpr int64_t kWords = 3, kLength = 4;

/// Log-probabilities of the tokens after a sequence, drawn by a number of the row and the
/// sequence.
std::vector<double> next_scores(int64_t row, const std::vector<int64_t>& written) {
  uint64_t stream = static_cast<uint64_t>(row) + 1;
  for (const int64_t token : written) stream = stream * 7 + static_cast<uint64_t>(token);
  const Random random(11, stream);
  std::vector<double> out;
  double sum = 0;
  for (uint64_t w = 0; w < kWords; ++w) out.push_back(4 * random.uniform(w));
  for (const double v : out) sum += std::exp(v);
  for (double& v : out) v -= std::log(sum);
  return out;
}

/// The model: inputs are the number of each row and the tokens so far.
class Model {
 public:
  const std::vector<Array>& operator()(const std::vector<Array>& inputs) {
    const int64_t rows = inputs[1].shape[0], length = inputs[1].shape[1];
    ++runs;
    outputs_ = {Array::empty(DType::kF32, {rows, length + 1, kWords})};
    float* to = outputs_[0].data<float>();
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t t = 0; t <= length; ++t) {
        std::vector<int64_t> written;
        for (int64_t i = 0; i < t; ++i) written.push_back(inputs[1].integer(row * length + i));
        for (const double v : next_scores(inputs[0].integer(row), written))
          *to++ = static_cast<float>(v);
      }
    return outputs_;
  }
  int runs = 0;

 private:
  std::vector<Array> outputs_;
};

/// The best of all sequences of at most kLength tokens, by the mean log-probability.
SearchResult best_of_all(int64_t row, const std::vector<int64_t>& written = {}, double sum = 0) {
  if (static_cast<int64_t>(written.size()) == kLength) return {written, sum / kLength};
  const auto scores = next_scores(row, written);
  SearchResult best{written, (sum + scores[0]) / static_cast<double>(written.size() + 1)};
  for (int64_t w = 1; w < kWords; ++w) {
    auto longer = written;
    longer.push_back(w);
    const auto found = best_of_all(row, longer, sum + scores[static_cast<size_t>(w)]);
    if (found.score > best.score) best = found;
  }
  return best;
}

std::vector<SearchResult> search(Model& model, int64_t rows, int64_t beams) {
  std::vector<int64_t> numbers(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) numbers[static_cast<size_t>(row)] = row;
  SearchOptions options;
  options.target = 1;
  options.beams = beams;
  options.max_length = kLength;
  return beam_search(
      [&](const auto& inputs) -> const auto& { return model(inputs); },
      {Array::from<int64_t>(numbers, {rows}), Array()}, options);
}

TEST(BeamSearch, FindsTheBestSequenceWithBeamsForAll) {
  Model model;
  constexpr int64_t kRows = 20;
  const auto found = search(model, kRows, 16);  // 2^4 sequences without an end
  ASSERT_EQ(found.size(), static_cast<size_t>(kRows));
  for (int64_t row = 0; row < kRows; ++row) {
    const auto best = best_of_all(row);
    EXPECT_EQ(found[static_cast<size_t>(row)].tokens, best.tokens) << row;
    EXPECT_NEAR(found[static_cast<size_t>(row)].score, best.score, 1e-5) << row;
  }
}

TEST(BeamSearch, TakesTheLikeliestTokenWithOneBeam) {
  Model model;
  const auto found = search(model, 10, 1);
  for (int64_t row = 0; row < 10; ++row) {
    std::vector<int64_t> written;
    while (static_cast<int64_t>(written.size()) < kLength) {
      const auto scores = next_scores(row, written);
      const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
      if (best == 0) break;
      written.push_back(best);
    }
    EXPECT_EQ(found[static_cast<size_t>(row)].tokens, written) << row;
  }
  EXPECT_LE(model.runs, kLength);
}

TEST(BeamSearch, MoreBeamsAreNoWorseOnTheWhole) {
  double before = -HUGE_VAL;
  for (const int64_t beams : {1, 4, 16}) {
    Model model;
    double sum = 0;
    for (const SearchResult& each : search(model, 50, beams)) sum += each.score;
    EXPECT_GE(sum, before);
    before = sum;
  }
}

TEST(BeamSearch, RejectsNanAndOtherShapes) {
  const auto run = [](Array scores) {
    SearchOptions options;
    options.max_length = 2;
    const std::vector<Array> outputs = {std::move(scores)};
    beam_search(
        [&](const auto&) -> const auto& { return outputs; },
        {Array(), Array::zeros(DType::kI64, {1})}, options);
  };
  EXPECT_THROW(run(Array::zeros(DType::kF32, {1, 5, kWords})), Error);
  EXPECT_THROW(run(Array::zeros(DType::kF32, {2, kWords})), Error);
  EXPECT_NO_THROW(run(Array::zeros(DType::kF32, {1, 3, kWords})));
  Array nan = Array::zeros(DType::kF32, {1, 3, kWords});
  nan.data<float>()[0] = NAN;
  EXPECT_THROW(run(nan), Error);
}

}  // namespace
}  // namespace paddle::infer
