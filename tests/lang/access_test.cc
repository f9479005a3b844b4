// Operations that access files, processes, the network, the terminal or other ranks: the model
// language and the text form of modules reject each of them.

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/module.h"
#include "ops/core/access.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

/// The error of a module that calls the operation without operands; reading stops at the first.
std::string module_error(const Op& op, uint32_t allowed = 0) {
  const std::string text = str("module 'm' {\n  func 'f'() {\n    %0 = ", op.name(), "(");
  try {
    ir::parse(text, "m.txt", allowed);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Access, EveryOperationIsCheckedInModules) {
  runtime::register_backends();
  int found = 0;
  for (const Op* op : all_ops()) {
    const bool accesses = (op->def->traits & kAllAccesses) != 0;
    found += accesses;
    EXPECT_EQ(module_error(*op).find("accesses") != std::string::npos, accesses) << op->name();
    EXPECT_EQ(access_error(*op).empty(), !accesses) << op->name();
    EXPECT_EQ(access_error(*op, kAllAccesses), "") << op->name();
  }
  EXPECT_GE(found, 10);
}

TEST(Access, WhatIsKnownToReachOutsideDeclaresIt) {
  const auto trait_of = [](const char* name) { return get_op(name).def->traits & kAllAccesses; };
  EXPECT_EQ(trait_of("read_file"), kAccessesFiles);
  EXPECT_EQ(trait_of("print"), 0u);  // numbers on standard error, which no model can shape
  EXPECT_EQ(trait_of("py_func"), kAccessesProcesses);
  for (const Op* op : all_ops())
    if (op->name().starts_with("comm.")) {
      EXPECT_EQ(op->def->traits & kAllAccesses, kAccessesRanks) << op->name();
    }
}

TEST(Access, IsGrantedByTrait) {
  const Op& gather = get_op("comm.all_gather");
  EXPECT_NE(module_error(gather, kAccessesFiles).find("accesses other ranks"), std::string::npos);
  EXPECT_EQ(module_error(gather, kAccessesRanks).find("accesses"), std::string::npos);
}

}  // namespace
}  // namespace paddle
