// The public communicator of one rank. tests/examples starts several.

#include "paddle/communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "paddle/error.h"

namespace {

using paddle::Array;
using paddle::Communicator;

TEST(CommunicatorOfOneRank, GivesWhatItGets) {
  Communicator run = Communicator::join();
  EXPECT_EQ(run.rank(), 0);
  EXPECT_EQ(run.size(), 1);
  run.barrier();
  const Array x = Array::from<float>({2, 1}, {3, 4});
  for (const Array& out : {run.all_reduce(x), run.broadcast(x), run.reduce_scatter(x),
                           run.all_to_all(x), run.all_reduce(x, paddle::Reduction::kMax, {0})}) {
    ASSERT_EQ(out.shape(), x.shape());
    EXPECT_EQ(out.data<float>()[0], 3);
    EXPECT_EQ(out.data<float>()[1], 4);
  }
  EXPECT_EQ(run.all_gather(x).shape(), (std::vector<int64_t>{1, 2, 1}));
}

TEST(CommunicatorOfOneRank, RejectsWrongRanks) {
  Communicator run = Communicator::join();
  const Array x = Array::scalar(1.0f);
  EXPECT_THROW(run.all_reduce(x, paddle::Reduction::kSum, {0, 1}), paddle::UsageError);
  EXPECT_THROW(run.all_reduce(x, paddle::Reduction::kSum, {0, 0}), paddle::UsageError);
  EXPECT_THROW(run.broadcast(x, 1), paddle::UsageError);
  EXPECT_THROW(run.reduce_scatter(x), paddle::UsageError);
  EXPECT_THROW(run.send(x, 0), paddle::UsageError);
  EXPECT_THROW(run.recv(paddle::DType::kFloat32, {1}, 1), paddle::UsageError);
  EXPECT_THROW(run.recv(paddle::DType::kFloat32, {-1}, 0), paddle::UsageError);
}

TEST(CommunicatorOfOneRank, RejectsAContradictoryEnvironment) {
  ::setenv("RANK", "3", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  EXPECT_THROW(Communicator::join(), paddle::UsageError);
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
}

}  // namespace
