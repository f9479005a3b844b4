// Recurrent layers with sequences of different lengths: each sequence gives what it gives without
// padding, and the padding gives zeros.

#include <gtest/gtest.h>

#include <cmath>

#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using testing_support::drawn;

constexpr int64_t kBatch = 4, kSteps = 5, kFeatures = 3, kHidden = 2, kLayers = 2;
constexpr int64_t kLengths[kBatch] = {3, 5, 1, 0};

class SequenceLength : public testing::Test {
 protected:
  runtime::EagerExecutor eager_;
  InterpreterScope scope_{eager_};
  uint32_t seed_ = 7;

  Tensor random(const Dims& shape) { return Tensor(drawn(shape, ++seed_, 1)); }
  Tensors weights(int64_t gates, int64_t directions) {
    Tensors out;
    for (int64_t layer = 0; layer < kLayers; ++layer)
      for (int64_t side = 0; side < directions; ++side) {
        const int64_t features = layer == 0 ? kFeatures : kHidden * directions;
        out.push_back(random({gates * kHidden, features}));
        out.push_back(random({gates * kHidden, kHidden}));
        out.push_back(random({gates * kHidden}));
        out.push_back(random({gates * kHidden}));
      }
    return out;
  }
};

/// Runs a layer; the last results are states.
Tensors run(const std::string& name, const std::string& direction, const Tensor& x,
            const Tensors& weights, const Tensor& h, const Tensor& c, const Tensor& lengths,
            bool time_major = false) {
  if (name == "lstm")
    return ops::lstm(x, 0, kLayers, direction, 0, time_major, true, weights, h, c, lengths);
  if (name == "gru")
    return ops::gru(x, 0, kLayers, direction, 0, time_major, true, weights, h, lengths);
  return ops::simple_rnn(x, 0, kLayers, direction, 0, time_major, "tanh", true, weights, h,
                         lengths);
}

Tensor rows(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  return ops::strided_slice(x, {axis}, {Dim(begin)}, {Dim(end)}, {1});
}

void expect_near(const Tensor& got, const Tensor& wanted, const std::string& what) {
  const Array a = got.array().contiguous(), b = wanted.array().contiguous();
  ASSERT_EQ(a.shape, b.shape) << what;
  for (int64_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a.number(i), b.number(i), 2e-6) << what << " at " << i;
}

TEST_F(SequenceLength, EachSequenceIsAsWithoutPadding) {
  const Tensor lengths(Array::from<int64_t>({kLengths, kLengths + kBatch}, {kBatch}));
  std::vector<uint8_t> inside;
  for (const int64_t length : kLengths)
    for (int64_t t = 0; t < kSteps; ++t) inside.push_back(t < length);
  const Tensor mask(
      Array::from<int64_t>({inside.begin(), inside.end()}, {kBatch, kSteps}).cast(DType::kBool));
  for (const std::string name : {"lstm", "gru", "simple_rnn"})
    for (const std::string direction : {"forward", "backward", "bidirect"}) {
      const int64_t directions = direction == "bidirect" ? 2 : 1;
      const Tensors w = weights(name == "lstm" ? 4 : name == "gru" ? 3 : 1, directions);
      const Tensor x = random({kBatch, kSteps, kFeatures});
      const Tensor h = random({kLayers * directions, kBatch, kHidden}), c = random(h.array().shape);
      const Tensors all = run(name, direction, x, w, h, c, lengths);
      const Tensors masked = run(name, direction, x, w, h, c, mask);
      const Tensors steps_first =
          run(name, direction, ops::transpose(x, {1, 0, 2}), w, h, c, lengths, true);
      for (size_t i = 0; i < all.size(); ++i) {
        expect_near(masked[i], all[i], "a mask, " + name);
        expect_near(i == 0 ? ops::transpose(steps_first[0], {1, 0, 2}) : steps_first[i], all[i],
                    "time_major, " + name);
      }
      for (int64_t b = 0; b < kBatch; ++b) {
        const std::string what = str(name, " ", direction, " sequence ", b);
        const int64_t length = kLengths[b];
        const Tensor out = rows(all[0], 0, b, b + 1), padding = rows(out, 1, length, kSteps);
        for (int64_t i = 0; i < padding.array().size(); ++i)
          EXPECT_EQ(padding.array().contiguous().number(i), 0) << what;
        const Tensor own_h = rows(h, 1, b, b + 1), own_c = rows(c, 1, b, b + 1);
        if (length == 0) {
          expect_near(rows(all[1], 1, b, b + 1), own_h, what);
          if (name == "lstm") expect_near(rows(all[2], 1, b, b + 1), own_c, what);
          continue;
        }
        const Tensors alone =
            run(name, direction, rows(rows(x, 0, b, b + 1), 1, 0, length), w, own_h, own_c, {});
        expect_near(rows(out, 1, 0, length), alone[0], what);
        for (size_t state = 1; state < all.size(); ++state)
          expect_near(rows(all[state], 1, b, b + 1), alone[state], what);
      }
    }
}

TEST_F(SequenceLength, OtherSizesAreErrors) {
  const Tensors w = weights(3, 1);
  const Tensor x = random({kBatch, kSteps, kFeatures});
  for (const Tensor& lengths : {Tensor(Array::zeros(DType::kI64, {kBatch + 1})),
                                Tensor(Array::zeros(DType::kI64, {kBatch, kSteps})),
                                Tensor(Array::zeros(DType::kBool, {kBatch, kSteps + 1})),
                                Tensor(Array::zeros(DType::kF32, {kBatch}))})
    EXPECT_THROW(run("gru", "forward", x, w, {}, {}, lengths), Error) << lengths.type().text();
}

}  // namespace
}  // namespace paddle
