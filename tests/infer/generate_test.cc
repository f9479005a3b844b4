// Text generation with models that were trained here: few sizes of inputs where what follows a
// token changes nothing, whole texts elsewhere.

#include "infer/generate.h"

#include <gtest/gtest.h>

#include <set>

namespace paddle::infer {
namespace {

enum class Kind { kCausal, kReadsAll, kReadsLength };

/// The next token is the sum of those it has read, modulo 5.
class Sums final : public program::Model {
 public:
  explicit Sums(Kind kind) : kind_(kind) {
    name_ = "sums";
    inputs_ = {{"tokens", {DType::kI64, {Dim(1), Dim::symbol("length")}}}};
    metadata_.vocabulary = data::Vocabulary({"a", "b", "c", "d", "e"});
  }
  int64_t parameter_count() const override { return 0; }
  double flops(const std::vector<Array>&) override { return 0; }
  const std::vector<Array>& run(const std::vector<Array>& inputs) override {
    const Array& tokens = inputs[0];
    const int64_t length = tokens.shape[1];
    lengths.insert(length);
    results_ = {Array::zeros(DType::kF32, {1, length, 5})};
    int64_t all = 0;
    for (int64_t t = 0; t < length; ++t) all += tokens.data<int64_t>()[t];
    int64_t sum = 0;
    for (int64_t t = 0; t < length; ++t) {
      sum += tokens.data<int64_t>()[t];
      const int64_t next = kind_ == Kind::kCausal     ? sum
                           : kind_ == Kind::kReadsAll ? all + t
                                                      : length;
      results_[0].data<float>()[t * 5 + (next + 1) % 5] = 1;
    }
    return results_;
  }
  std::set<int64_t> lengths;

 private:
  Kind kind_;
  std::vector<Array> results_;
};

std::string written(Sums& model, int64_t length) {
  GenerateOptions options;
  options.prompt = "bd";
  options.length = length;
  options.context = 40;
  options.sampling.temperature = 0;
  std::string out;
  generate(model, options, [&](const std::string& piece) {
    out += piece;
    return true;
  });
  return out;
}

TEST(Generate, CausalModelsArePaddedToFewLengths) {
  Sums model(Kind::kCausal);
  std::string wanted;
  std::vector<int64_t> tokens = {1, 3};
  for (int i = 0; i < 60; ++i) {
    int64_t sum = 0;
    for (size_t t = tokens.size() > 40 ? tokens.size() - 40 : 0; t < tokens.size(); ++t)
      sum += tokens[t];
    tokens.push_back((sum + 1) % 5);
    wanted += static_cast<char>('a' + tokens.back());
  }
  EXPECT_EQ(written(model, 60), wanted);
  EXPECT_EQ(model.lengths, (std::set<int64_t>{2, 16, 32, 40}));
}

TEST(Generate, ModelsThatReadWhatFollowsRunOnTheWholeText) {
  for (const Kind kind : {Kind::kReadsAll, Kind::kReadsLength}) {
    Sums model(kind);
    std::string wanted;
    std::vector<int64_t> tokens = {1, 3};
    for (int i = 0; i < 10; ++i) {
      const auto length = static_cast<int64_t>(tokens.size());
      int64_t sum = 0;
      for (const int64_t token : tokens) sum += token;
      tokens.push_back(((kind == Kind::kReadsAll ? sum + length - 1 : length) + 1) % 5);
      wanted += static_cast<char>('a' + tokens.back());
    }
    EXPECT_EQ(written(model, 10), wanted);
  }
}

}  // namespace
}  // namespace paddle::infer
