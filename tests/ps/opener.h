#pragma once
// A small table for the tests of lanes and servers: SGD of rate 1, zeros at first.

#include <memory>
#include <utility>

#include "optim/optimizer_kind.h"
#include "program/memory_table.h"
#include "ps/lane.h"

namespace paddle::ps::test {

inline constexpr int64_t kWidth = 2;

inline TableOpener opener() {
  optim::OptimizerOptions options;
  options.rule = optim::make_rule("sgd");
  options.lr = 1;
  options.groups = {{}};
  options.groups[0].match = {"*"};
  options.groups[0].lr = 1;
  auto rule = std::make_shared<const optim::Optimizer>(std::move(options));
  return [rule](program::TableSpec declared, uint64_t seed) -> std::unique_ptr<program::RowTable> {
    declared.tracks_changes = true;
    return std::make_unique<program::MemoryTable>(std::move(declared), rule, seed);
  };
}

inline program::TableSpec spec() {
  return {.path = "t",
          .width = kWidth,
          .dtype = DType::kF64,
          .init = lang::Initializer::constant(0),
          .key = DType::kU64};
}

}  // namespace paddle::ps::test
