// Bounds of shards, parts of arrays, and atoms of dims.

#include "partition/layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "partition/atoms.h"

namespace paddle::partition {
namespace {

Array numbers(const Dims& shape) {
  Array out = Array::empty(DType::kI64, shape);
  std::iota(out.data<int64_t>(), out.data<int64_t>() + out.size(), 0);
  return out;
}

std::vector<int64_t> values(const Array& array) {
  return {array.data<int64_t>(), array.data<int64_t>() + array.size()};
}

TEST(Mesh, CoordinatesAndGroups) {
  const Mesh mesh({{"data", 2}, {"tensor", 3}});
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.coordinate(5, 0), 1);
  EXPECT_EQ(mesh.coordinate(5, 1), 2);
  EXPECT_EQ(mesh.group(5, 0), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(mesh.group(1, 1), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(mesh.text(), "data 2 x tensor 3");
}

TEST(Mesh, ViewsAreTheInnerPartsOfAxes) {
  Mesh mesh({{"data", 4}, {"tensor", 2}});
  mesh.add_view("expert", "data", 2);
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_EQ(mesh.axes().size(), 2u);
  const int expert = mesh.axis("expert");
  EXPECT_EQ(expert, 2);
  EXPECT_EQ(mesh.axis_size(expert), 2);
  EXPECT_EQ(mesh.whole_axis(expert), 0);
  EXPECT_EQ(mesh.whole_axis(1), 1);
  // Rank 5 has the coordinates data 2, tensor 1.
  EXPECT_EQ(mesh.coordinate(5, expert), 0);
  EXPECT_EQ(mesh.group(5, expert), (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(mesh.group(7, expert), (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(mesh.group(0, expert), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(mesh.replicas(5, expert), (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(mesh.replicas(2, expert), (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(mesh.text(), "data 4 x tensor 2, expert 2 within data");
  EXPECT_THROW(mesh.add_view("other", "data", 3), Error);
}

TEST(Mesh, ShardBoundsCoverEveryCount) {
  for (int parts = 1; parts <= 5; ++parts)
    for (int64_t count = 0; count <= 3 * parts + 1; ++count) {
      int64_t at = 0;
      for (int i = 0; i < parts; ++i) {
        const auto [begin, end] = shard_bounds(count, i, parts);
        EXPECT_EQ(begin, at);
        EXPECT_LE(end - begin, count / parts + 1);
        EXPECT_GE(end - begin, count / parts);
        at = end;
      }
      EXPECT_EQ(at, count);
    }
}

TEST(Layout, ColumnsWithinEachOfThreeParts) {
  // [2, 3 x 4]: of each of the three groups of four columns, rank 1 has the last two.
  const Mesh mesh({{"tensor", 2}});
  const Placement placement = {{0, 1, 3, 2}};
  EXPECT_EQ(shard_shape({2, 12}, placement, mesh, 1), (Dims{2, 6}));
  EXPECT_EQ(values(shard(numbers({2, 12}), placement, mesh, 1)),
            (std::vector<int64_t>{2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23}));
}

TEST(Layout, ZigzagPairsEarlyAndLateBlocks) {
  const Mesh mesh({{"context", 3}});
  const Placement placement = {{0, 0, 1, 12, ir::SplitOrder::kZigzag}};
  EXPECT_EQ(shard_shape({12}, placement, mesh, 0), (Dims{4}));
  EXPECT_EQ(values(shard(numbers({12}), placement, mesh, 0)), (std::vector<int64_t>{0, 1, 10, 11}));
  EXPECT_EQ(values(shard(numbers({12}), placement, mesh, 1)), (std::vector<int64_t>{2, 3, 8, 9}));
  EXPECT_EQ(values(shard(numbers({12}), placement, mesh, 2)), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(text(placement, {12}, mesh), "[12 context in zigzag order]");
  // Position i of a causal mask reads i + 1 positions: the same number on each rank.
  for (int rank = 0; rank < 3; ++rank) {
    int64_t pairs = 0;
    for (const int64_t i : values(shard(numbers({12}), placement, mesh, rank))) pairs += i + 1;
    EXPECT_EQ(pairs, 26);
  }
}

TEST(Layout, AFractionOfAnAxis) {
  Mesh mesh({{"data", 4}, {"tensor", 2}});
  mesh.add_view("expert", "data", 2);
  const Placement placement = {{mesh.axis("expert"), 0, 1, 4}};
  EXPECT_EQ(text(placement, {4, 2}, mesh), "[4 expert, 2]");
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const int64_t first = rank / 2 % 2 * 4;  // ranks that differ in `tensor` have the same part
    EXPECT_EQ(values(shard(numbers({4, 2}), placement, mesh, rank)),
              (std::vector<int64_t>{first, first + 1, first + 2, first + 3}));
  }
}

TEST(Layout, PartsMakeUpTheWhole) {
  const Mesh mesh({{"data", 2}, {"tensor", 3}});
  const std::vector<std::pair<Dims, Placement>> cases = {
      {{7}, {{1, 0, 1, 7}}},
      {{5, 4}, {{0, 0, 1, 5}, {1, 1, 1, 4}}},
      {{2, 30, 3}, {{1, 1, 3, 5}}},
      {{24, 2}, {{0, 0, 1, 4}, {1, 0, 4, 6}}},  // two axes within one dim
      {{1, 2}, {{1, 1, 1, 2}}},                 // fewer units than ranks
      {{13, 3}, {{1, 0, 1, 13, ir::SplitOrder::kZigzag}}},
      {{24, 5}, {{1, 0, 2, 6, ir::SplitOrder::kZigzag}, {0, 1, 1, 5}}},
      {{1, 3}, {{1, 1, 1, 3, ir::SplitOrder::kZigzag}}},
  };
  for (const auto& [shape, placement] : cases) {
    const Array whole = numbers(shape);
    Array joined = Array::zeros(DType::kI64, shape);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      const Array part = shard(whole, placement, mesh, rank);
      EXPECT_EQ(part.shape, shard_shape(shape, placement, mesh, rank));
      unshard(part, joined, placement, mesh, rank);
    }
    EXPECT_EQ(values(joined), values(whole));
  }
}

TEST(Atoms, ReshapesTakeDimsApart) {
  Atoms atoms;
  const AtomList columns = atoms.make(384);
  const AtomList three = atoms.make(3), heads = atoms.make(4), width = atoms.make(32);
  AtomList parts = three;
  parts.insert(parts.end(), heads.begin(), heads.end());
  parts.insert(parts.end(), width.begin(), width.end());
  EXPECT_TRUE(atoms.unify(columns, parts));
  const AtomList found = atoms.resolve(columns);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found, atoms.resolve(parts));
  EXPECT_EQ(atoms.size(found[1]), 4);
  // Another view of the same dim: 12 x 32.
  AtomList other = atoms.make(12);
  const AtomList last = atoms.make(32);
  other.insert(other.end(), last.begin(), last.end());
  EXPECT_TRUE(atoms.unify(other, columns));
  EXPECT_EQ(atoms.resolve(other), found);
}

TEST(Atoms, WhatCannotBeAlignedStaysApart) {
  Atoms atoms;
  AtomList a = atoms.make(4), b = atoms.make(3);
  const AtomList a2 = atoms.make(3), b2 = atoms.make(4);
  a.insert(a.end(), a2.begin(), a2.end());
  b.insert(b.end(), b2.begin(), b2.end());
  EXPECT_FALSE(atoms.unify(a, b));
  EXPECT_NE(atoms.resolve(a), atoms.resolve(b));
  EXPECT_TRUE(atoms.make(1).empty());
}

}  // namespace
}  // namespace paddle::partition
