// Passes that are added while the program runs.

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/tracer.h"
#include "ops/generated/math.h"
#include "runtime/compile.h"

namespace paddle::compiler {
namespace {

std::unique_ptr<ir::Function> traced() {
  auto f = std::make_unique<ir::Function>("f");
  ir::Tracer tracer(*f);
  const InterpreterScope scope(tracer);
  const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {2}});
  tracer.output({ir::PortKind::kValue, "y"}, ops::exp(x));
  return f;
}

size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// Removes what a test adds.
struct Added {
  explicit Added(std::vector<AddedPass> passes) {
    for (const AddedPass& pass : passes) names.push_back(pass.name);
    added_passes().add(std::move(passes), {"plugin.yaml", 3});
  }
  ~Added() { added_passes().remove(names); }
  std::vector<std::string> names;
};

TEST(AddedPasses, RunWhereTheyState) {
  int runs = 0;
  const auto count = [&](ir::Function&, const CompileOptions&) { ++runs; };
  const Added added(
      {{.name = "first", .stage = Stage::kCanonicalize, .after = "fold_constants", .run = count},
       {.name = "last", .stage = Stage::kLayout, .run = count}});
  const std::vector<std::string> names = pass_names();
  EXPECT_EQ(place_of(names, "first"), place_of(names, "fold_constants") + 1);
  EXPECT_EQ(place_of(names, "last"), place_of(names, "cse") + 1);
  EXPECT_LT(place_of(names, "last"), place_of(names, "decompose_for_fusion"));
  runtime::optimize(*traced());
  EXPECT_EQ(runs, 2);
  runtime::optimize(*traced(), {.exact = true});
  EXPECT_EQ(runs, 2) << "they do not state that they keep bits";
}

TEST(AddedPasses, SeeTheOptionsAndMayChangeTheFunction) {
  const Added added({{.name = "to_sin",
                      .stage = Stage::kCanonicalize,
                      .keeps_bits = true,
                      .run = [](ir::Function& f, const CompileOptions& options) {
                        EXPECT_TRUE(options.exact);
                        f.body.operations.front()->op = &get_op("sin");
                      }}});
  auto f = traced();
  runtime::optimize(*f, {.fusion = false, .exact = true});
  EXPECT_EQ(f->body.operations.front()->op->name(), "sin");
}

TEST(AddedPasses, WhatTheyBreakIsNamed) {
  const Added added({{.name = "breaks", .run = [](ir::Function& f, const CompileOptions&) {
                        f.body.operations.front()->operands.clear();
                      }}});
  try {
    runtime::optimize(*traced());
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInternal);
    EXPECT_NE(e.message().find("the pass 'breaks' failed"), std::string::npos) << e.message();
  }
}

TEST(AddedPasses, AreAddedAllOrNone) {
  const Added added(std::vector<AddedPass>{{.name = "one", .run = {}}});
  EXPECT_THROW(added_passes().add({{.name = "two"}, {.name = "one"}}, {"other.yaml"}), Error);
  EXPECT_EQ(added_passes().find("two"), nullptr);
}

}  // namespace
}  // namespace paddle::compiler
